"""Help that a newcomer can read, completion by the shell, and numbers as people write them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

from dashi import kernels
from dashi.cli import options
from dashi.cli.main import app
from dashi.cli.options import whole
from dashi.errors import suggestion
from dashi.flow._derived_fields import DERIVED
from dashi.flow.initial import INITIAL
from dashi.flow.proxy.catalogue import MODELS
from dashi.kernels import _catalogue as catalogue
from dashi.runtime._cpu_device import CpuDevice


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    below: dict[str, Any] = getattr(command, "commands", {})
    yield path
    for name, sub in below.items():
        yield from commands(sub, (*path, name))


ALL = list(commands(typer.main.get_command(app)))


def call(*words: str) -> Any:
    return CliRunner().invoke(app, list(words))


@pytest.mark.parametrize("words", ALL, ids=lambda words: " ".join(words) or "dashi")
def test_help_is_whole_plain_and_names_nothing_that_a_wheel_lacks(words: tuple[str, ...]) -> None:
    text = call(*words, "--help").stdout
    assert "..." not in text.split("Usage:")[0]
    assert not re.search(r"docs/\w+\.md", text)
    assert "list[" not in text
    usage = text.splitlines()[0]
    assert "{" not in usage
    assert "[[" not in usage
    # Nothing is cut: an ellipsis stands only after what can be repeated.
    assert not re.search(r"[a-z,]\.\.\.$", text, re.MULTILINE)
    described = text.split("Example:")[0]
    assert max(map(len, described.splitlines())) <= 80


@pytest.mark.parametrize("line", ["flow simulate", "flow fit", "flow evaluate", "flow rollout", "rollout"])
def test_many_options_stand_in_groups(line: str) -> None:
    text = call(*line.split(), "--help").stdout
    sections = re.split(r"^(?=\S[^\n]*:$)", text, flags=re.MULTILINE)[1:]
    counts = {one.splitlines()[0].rstrip(":"): len(re.findall(r"^  -", one, re.MULTILINE)) for one in sections}
    counts.pop("Arguments", None)
    assert len(counts) >= 5
    assert max(counts.values()) <= 12
    assert list(counts)[-1] == "Options"
    assert "Where it runs" in counts


def test_the_usage_line_names_arguments_plainly() -> None:
    assert call("verify", "-h").stdout.startswith("Usage: dashi verify [OPTIONS] CERTIFICATE\n")
    assert call("kernels", "check", "-h").stdout.startswith("Usage: dashi kernels check [OPTIONS] [NAME...]\n")


@pytest.mark.parametrize("command", ["check", "build", "tune"])
def test_help_says_that_a_folder_is_code_that_runs(command: str) -> None:
    text = " ".join(call("kernels", command, "--help").stdout.split())
    assert "Its kernel.py is Python that is run here: name only folders that you trust." in text


@pytest.mark.parametrize(
    ("text", "number"), [("12", 12), ("1e6", 10**6), ("1_000", 1000), ("2.5e3", 2500), ("-3", -3), (" 7 ", 7), (5, 5)]
)
def test_whole_numbers_are_taken_as_people_write_them(text: str, number: int) -> None:
    assert whole(text) == number


@pytest.mark.parametrize("text", ["1.5", "1e-3", "x", "", "nan", "inf", "1e400", "1e999999999", "9" * 5000])
def test_what_is_no_whole_number_is_wrong_usage_that_says_what_one_is(text: str) -> None:
    done = call("flow", "simulate", "--n", "16", "--device", "cpu", "--steps", text)
    assert done.exit_code == 2
    assert "is not a whole number; write for instance 1000000 or 1e6." in done.stderr


def test_steps_in_scientific_notation_run() -> None:
    done = call("flow", "simulate", "--n", "16", "--device", "cpu", "--host-fft", "--steps", "1e1")
    assert done.exit_code == 0
    assert "after 10 steps" in done.stdout


def complete(line: str) -> tuple[list[str], str]:
    """What bash offers at the end of a line, and which heavy modules it took."""
    words = line.split(" ")
    code = (
        "import sys\nfrom dashi.cli.main import app\n"
        "try:\n    app(prog_name='dashi')\nexcept SystemExit as end:\n    assert end.code == 0\n"
        "print(sorted({'numpy', 'rich', 'yaml', 'dashi.runtime'} & set(sys.modules)), file=sys.stderr)"
    )
    env = {"_DASHI_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **env})
    assert done.returncode == 0, done.stderr
    return done.stdout.split(), done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("dashi kernels show axp", ["axpy"]),
        ("dashi kernels list --family ele", ["elementwise"]),
        ("dashi flow simulate --device vul", ["vulkan:0", "vulkan:1"]),
        ("dashi flow fit --model ga", ["galerkin"]),
        ("dashi flow fit --baseline pers", ["persistence"]),
        ("dashi flow simulate --field str", ["streamfunction", "strain_normal", "strain_shear"]),
        ("dashi flow simulate --initial tay", ["taylor-green"]),
        ("dashi flow simulate --scheme et", ["etdrk4"]),
        ("dashi rollout --op-device c", ["cpu"]),
        ("dashi verify --against n", ["null"]),
        ("dashi bench flow --peer t", ["torch"]),
        ("dashi kern", ["kernels"]),
    ],
)
def test_the_shell_completes_names_without_heavy_imports(line: str, offered: list[str]) -> None:
    assert complete(line) == (offered, "[]")


def test_completion_is_installed_for_the_shell_that_asks(tmp_path: Path) -> None:
    script = "dashi --install-completion; . ~/.bashrc; complete -p dashi"
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "HOME": str(tmp_path), "PATH": path}
    done = subprocess.run(["bash", "--norc", "-c", script], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"bash completion installed in {tmp_path}/.bash_completions/" in done.stdout
    assert done.stdout.splitlines()[-1] == "complete -o default -F _dashi_completion dashi"


def test_names_that_are_completed_are_those_there_are() -> None:
    assert options.complete_models("") == list(MODELS)
    assert set(options.INITIAL_CONDITIONS) == set(INITIAL)
    assert set(options.FIELDS) == set(DERIVED)
    assert [name for name, _ in options.complete_kernels("")] == list(kernels.names())
    assert set(options.complete_families("")) == {kernels.get(name).family for name in kernels.names()}


def test_kernels_are_listed_by_pattern_family_and_portability() -> None:
    some = call("kernels", "list", "gemm*", "--family", "linear").stdout
    assert re.findall(r"^  (\w+)", some, re.MULTILINE)
    assert all(name.startswith("gemm") for name in re.findall(r"^  (\w+)", some, re.MULTILINE))
    every = call("kernels", "list", "gemm").stdout
    portable = call("kernels", "list", "gemm", "--portable").stdout
    assert "gemm_fast" in every
    assert "(not portable)" in every
    assert "gemm_fast" not in portable
    assert "(not portable)" not in portable


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("kernels", "list", "gemvv"), "did you mean gemv"),
        (("kernels", "list", "--family", "linaer"), "did you mean linear?"),
        (("kernels", "show", "axpi"), "did you mean axpy"),
        (("flow", "simulate", "--initial", "randon"), "did you mean random?"),
        (("flow", "fit", "--model", "galerkim", "--out", "m.npz"), "did you mean galerkin?"),
        (("flow", "fit", "--baseline", "persistance", "--out", "m.npz"), "did you mean persistence?"),
        (("flow", "simulate", "--field", "vortcity"), "did you mean vorticity or"),
        (
            ("flow", "simulate", "--forcing", "kolmogorov", "--force", "k=4"),
            "it takes wavenumber and amplitude.",
        ),
        (("flow", "simulate", "--forcing", "kolmogorov", "--force", "wavenumbr=4"), "did you mean wavenumber?"),
    ],
)
def test_a_wrong_name_is_told_the_nearest_one(words: tuple[str, ...], said: str, here: Path) -> None:
    done = call(*words)
    assert done.exit_code == 3, done.output
    assert said in done.stderr
    assert "__init__" not in done.stderr


def test_nothing_is_suggested_for_what_is_near_nothing() -> None:
    assert suggestion("qqqq", ["add", "axpy"]) == ""
    assert suggestion("ad", ["add", "axpy"]) == "did you mean add? "


def test_show_says_how_a_kernel_is_called() -> None:
    text = call("kernels", "show", "axpy").stdout
    for part in ("axpy(x, y, a=...) -> result", "T is f32, f64 (needs fp64 int64)", "the same bits on every device"):
        assert part in text
    assert "flops" in text
    assert "must be given: factor of x" in text
    assert 'd.run("axpy", x, y, a=' in text


def test_every_example_of_a_kernel_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("dashi.open", CpuDevice)
    for name in kernels.names():
        exec(catalogue.example(kernels.get(name)), {})
        assert capsys.readouterr().out.strip(), name
        assert catalogue.example_cost(kernels.get(name))[1].bytes > 0, name
