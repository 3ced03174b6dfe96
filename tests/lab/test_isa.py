"""Machine code of vendors' compilers: read right, compiled with real constants, within bounds of memory and time."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from dashi import kernels, lab
from dashi.errors import DeviceNotFoundError, InputError, LimitError
from dashi.kernels.abi import Call, Limits, Plan
from dashi.lab.isa._compiler import VendorCompiler
from dashi.lab.isa._instructions import ISAS, InstructionCounts, count
from dashi.lab.isa._modules import module_uses
from dashi.lab.isa._vendors import VENDORS, Toolchain, toolchain
from dashi.lab.isa.machine_code import MachineCode, MachineCodeReport
from dashi.runtime._cpu_device import EVERY_FEATURE
from dashi.runtime.info import DeviceInfo

GPU = DeviceInfo(
    "vulkan:0", "gpu", "discrete", features=EVERY_FEATURE, limits=Limits(invocations=1024, shared_bytes=49152),
    subgroup_size=32,
)  # fmt: skip

# What the compilers print, cut to what matters.
AMD_DIVISION = """\
BB0:
	v_cvt_f32_u32_e32 v1, s5                                    ; 7e020c05
	v_rcp_f32_e32 v1, v1                                        ; 7e025501
	s_sub_i32 s0, 0, s5                                         ; 81800580
	v_mul_f32_e32 v1, 0x4f7ffffe, v1                            ; 100202ff 4f7ffffe
	v_cvt_u32_f32_e32 v1, v1                                    ; 7e020f01
	v_mad_u64_u32 v[2:3], s[0:1], v1, s0, 0                     ; d6fe0002 02000101
"""
AMD_FUSED = """\
	v_fmac_f32_e32 v3, v1, v2                                   ; 56060501
	v_fma_f64 v[4:5], v[0:1], v[2:3], v[4:5]                    ; d6140004
	v_dual_fmac_f32 v0, v1, v2 :: v_dual_mul_f32 v3, v4, v5     ; c8060501
	v_pk_fma_f16 v1, v2, v3, v4                                 ; cc0e4001
	v_mul_f32_e32 v3, s8, v3                                    ; 10060608
"""
AMD_OTHER = """\
	v_mad_f32 v1, v2, v3, v4                                    ; d1c10001
	v_exp_f32_e32 v1, v1                                        ; 7e024b01
	v_rcp_f32_e32 v1, v2                                        ; 7e025501
	v_sqrt_f64_e32 v[0:1], v[2:3]                               ; 7e006502
	s_denorm_mode 0x0                                           ; bf9e0000
"""
NVK_DIVISION = """\
block.u 0 L1 [] -> {
      r1     = i2f.f32.u32.re c[0x0][0x70c]            // delay=2 wr:0
      r1     = mufu.rcp.f32 r1                         // delay=2 wt=000001 wr:0
      r1     = f2i.u32.f32.rz.ftz r1                   // delay=2 wr:0
      ur4..6 = imad64 ur2 ur0 rZ                       // delay=4
} -> [1]
"""
NVK_FUSED = """\
      r3     = ffma.ftz r1 r2 r3                       // delay=4
      r4..6  = dfma r0..2 r2..4 r4..6                  // delay=4
      r1     = mufu.ex2 r1                             // delay=2
      r3     = fmul.ftz r3 ur3                         // delay=5
      r3     = fadd r3 r4                              // delay=5
              bra !up0 L5                              // delay=1
"""
APPLE_DIVISION = """\
   2 = fmul 24, 25
  62: be890a042800           u32_to_f $r2, $r0, rte
  68: 8a0d8482               rcp      $r3, $r2
  6c: ba09c46a2830           ffma     $r2, ^r2.neg, $r3, 1.0
  72: ba89c46228860200       ffma     $r2, ^r2, $r3, $r3
  88: 1a89c4622800           fmul     r2, ^r2, $r3
"""
APPLE_FUSED = """\
  52: 9a9192812400           fmul     $r4, u9, r4
1a72: ba89c46228860200       ffma     $r7, ^r4, $r5, $r7
1a7a: 8a0d8482               rcp      $r3, $r7
1a80: 8a0d8482               exp2     $r3, $r7
"""
ADRENO_DIVISION = """\
; num_ubos:           0
@const(c8.x)	0x7fc00000, 0x7f800000, 0x7fffffff, 0x00000000
(rpt1)cov.u32f32 r48.w, (r)c504.z
(ss)rcp r48.w, r48.w
rcp r49.x, r49.x
(nop1) madsh.m16 r1.y, r0.w, r1.y, r2.y
"""
ADRENO_OTHER = """\
(sy)mad.f32 r1.x, r0.x, r0.y, r1.x
(rpt1)mad.f32 r2.x, (r)r0.x, r0.y, (r)r2.x
(ss)(nop2) exp2 r1.x, r1.x
rcp r1.y, r1.z
"""


@pytest.mark.parametrize(
    ("vendor", "text", "counts"),
    [
        ("amd", AMD_DIVISION, InstructionCounts(6, divisions=1)),
        ("amd", AMD_FUSED, InstructionCounts(6, fused=4)),
        ("amd", AMD_OTHER, InstructionCounts(5, unfused=1, estimates=3, flushing=2)),
        ("nvk", NVK_DIVISION, InstructionCounts(4, divisions=1, flushing=1)),
        ("nvk", NVK_FUSED, InstructionCounts(6, fused=2, estimates=1, flushing=2)),
        ("apple", APPLE_DIVISION, InstructionCounts(5, divisions=1)),
        ("apple", APPLE_FUSED, InstructionCounts(4, fused=1, estimates=2)),
        ("adreno", ADRENO_DIVISION, InstructionCounts(5, divisions=2)),
        ("adreno", ADRENO_OTHER, InstructionCounts(5, unfused=3, estimates=2)),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 10 else "",
)
def test_instructions_are_counted_by_what_they_do(vendor: str, text: str, counts: InstructionCounts) -> None:
    assert count(ISAS[vendor], text) == counts


@pytest.mark.parametrize("vendor", list(VENDORS))
def test_every_vendor_has_an_instruction_set(vendor: str) -> None:
    assert count(ISAS[vendor], "") == InstructionCounts()


def test_a_register_that_was_written_since_is_no_converted_integer() -> None:
    text = AMD_DIVISION.replace("s_sub_i32 s0, 0, s5", "v_rcp_f32_e32 v7, v1")
    assert count(ISAS["amd"], text).estimates == 1


def test_modules_have_the_constants_of_the_kernels_cases() -> None:
    uses, lacking = module_uses(kernels.get("axpy"), GPU)
    assert {(use.shader, use.variant, use.spec) for use in uses} >= {
        ("main", "f32", (256, 4)), ("wide", "f32", (256, 2)), ("wide", "f64", (256, 1)),
    }  # fmt: skip
    assert not lacking


def test_variants_that_a_gpu_cannot_run_are_named_with_what_is_missing() -> None:
    small = DeviceInfo("vulkan:0", "gpu", "integrated", limits=Limits(invocations=512), subgroup_size=32)
    uses, lacking = module_uses(kernels.get("axpy"), small)
    assert {use.variant for use in uses} >= {"f32"}
    assert "f64: fp64 int64" in lacking
    assert "f64" not in {use.variant for use in uses}


def test_a_kernel_whose_plans_do_not_fit_a_gpu_is_named_too() -> None:
    def plan(_: Call) -> Plan:
        raise LimitError("it needs more.", "take another GPU.")

    uses, lacking = module_uses(replace(kernels.get("axpy"), plan=plan, dtypes=("f32",)), GPU)
    assert (uses, lacking) == ([], ["f32: other limits: it needs more."])


def fake(tmp_path: Path, body: str) -> Toolchain:
    """A compiler of a few lines of Python: it describes a GPU, then does with every request what `body` says."""
    script = tmp_path / "compiler.py"
    script.write_text(
        f"import sys, json, time, os\nprint({json.dumps({'info': GPU.as_json()})!r}, flush=True)\n"
        f"for line in sys.stdin:\n    request = json.loads(line)\n    {body}\n"
    )
    return Toolchain("made up", (sys.executable, str(script)), {})


def test_a_compiler_that_takes_too_long_is_ended_and_the_next_module_goes_on(tmp_path: Path) -> None:
    body = 'time.sleep(60 if request["spec"] else 0); print(json.dumps({"text": "code"}), flush=True)'
    with VendorCompiler(fake(tmp_path, body), 1 << 30, 0.5) as compiler:
        assert compiler.compile({"spec": [1]}) == ("", "took more than 0.5 s")
        assert compiler.compile({"spec": []}) == ("code", "")


def test_a_compiler_that_crashes_is_a_finding_of_its_module(tmp_path: Path) -> None:
    body = 'sys.exit("no memory left") if request["spec"] else print(json.dumps({"text": "code"}), flush=True)'
    with VendorCompiler(fake(tmp_path, body), 1 << 30, 20.0) as compiler:
        text, problem = compiler.compile({"spec": [1]})
        assert not text
        assert problem == "ended with exit code 1, at most 1 GiB of memory allowed (no memory left)"
        assert compiler.compile({"spec": []}) == ("code", "")


def test_a_compiler_that_does_not_start_is_an_error_with_a_fix() -> None:
    with pytest.raises(DeviceNotFoundError, match=r"does not start.*Fix: get the vendors' compilers"):
        VendorCompiler(Toolchain("none", (sys.executable, "-c", "import nothing_of_this_name"), {}), 1 << 30, 1.0)


def row(*, portable: bool, problem: str = "", **counts: int) -> MachineCode:
    return MachineCode("gpu", "driver", "k", "main", "f32", (), portable, InstructionCounts(9, **counts), problem)


def test_only_portable_kernels_must_not_fuse_or_estimate() -> None:
    assert row(portable=True, unfused=3, divisions=2, flushing=5).ok
    assert not row(portable=True, fused=1).ok
    assert not row(portable=True, estimates=1).ok
    assert row(portable=False, fused=1, estimates=1).ok
    assert not row(portable=False, problem="took more than 120 s").ok
    rows = (row(portable=True, unfused=2), row(portable=False, fused=7, unfused=1))
    report = MachineCodeReport(lab.MachineCodeRequest("amd"), rows)
    assert report.ok
    assert (report.fused(portable=True), report.fused(portable=False)) == (0, 7)
    assert report.multiply_adds(portable=False) == 8


def test_unknown_vendors_gpus_and_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="choose one of amd, nvk, apple, adreno"):
        lab.inspect_machine_code(lab.MachineCodeRequest("voodoo"))
    with pytest.raises(InputError, match=r"choose one of: gfx1100 \(RDNA3\), polaris10 \(RX 580\)"):
        lab.inspect_machine_code(lab.MachineCodeRequest("amd", gpu="rage"))
    with pytest.raises(DeviceNotFoundError, match=r"nouveau\.json is missing.*tests/drivers/fetch vendors"):
        lab.inspect_machine_code(lab.MachineCodeRequest("nvk", kernels=("axpy",), drivers=tmp_path))


def amd(kernel_names: tuple[str, ...] = ()) -> MachineCodeReport:
    try:
        toolchain(VENDORS["amd"], VENDORS["amd"].gpus[0], None)
    except DeviceNotFoundError as error:
        pytest.skip(error.what)
    return lab.inspect_machine_code(lab.MachineCodeRequest("amd", kernel_names, gpu="gfx1100"))


def test_amd_compiles_a_few_kernels_without_its_hardware() -> None:
    report = amd(("axpy", "fft2_fast"))
    assert report.ok, [row for row in report.rows if not row.ok]
    assert report.fused(portable=True) == 0
    assert report.fused(portable=False) > 0


@pytest.mark.long
def test_no_portable_kernel_is_contracted_or_estimated_on_amd() -> None:
    report = amd()
    assert report.ok, [row for row in report.rows if not row.ok][:5]
    assert {row.kernel for row in report.rows} == set(kernels.names())
    assert report.fused(portable=False) > 1000
