"""Errors of the library name parameters; a command's errors name its flags."""

from __future__ import annotations

import pytest
import typer
from typer.testing import CliRunner

from dashi.cli.flags import in_flags, renamed_flags, speaking_of_flags
from dashi.cli.help import App
from dashi.cli.progress import Shown
from dashi.errors import InputError


def _command(text: str, fix: str = "leave it away.") -> App:
    app = App("program")

    @app.callback()
    def root() -> None:  # pyright: ignore[reportUnusedFunction]
        """A group, so that the command has a name."""

    @app.command("do")
    def do(  # pyright: ignore[reportUnusedFunction]
        certificate: str = typer.Argument(metavar="CERTIFICATE"),
        hash_every: int = typer.Option(1, "--hash-every"),
        resume: bool = typer.Option(False, "--resume"),
        device: str = typer.Option("auto", "-d", "--device"),
        no_portable: bool = typer.Option(False, "--no-portable"),
        A: str = typer.Option("", "--A"),  # noqa: N803 - as in the equation
    ) -> None:
        Shown().remark(text)
        raise InputError(text, fix)

    return app


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("`hash_every=` is 0.", "--hash-every is 0."),
        ("go on with `resume=True`.", "go on with --resume."),
        ("`device=\"cpu\"` computes, or `device='null'`.", "--device cpu computes, or --device null."),
        ("certify a run without `portable=False`.", "certify a run without --no-portable."),
        ("`A=` is needed.", "--A is needed."),
        ("say `A={'time': 't'}`.", "say --A time=t."),
        ("name `A=('u', 'v')`, or `A=[w`.", "name --A u --A v, or --A [w."),
        ("`A=[1/0].npy` is a file.", "--A [1/0].npy is a file."),
        ("`certificate=` was edited.", "CERTIFICATE was edited."),
        ("look at the `device` and at `dashi doctor`.", "look at the `device` and at `dashi doctor`."),
        ("device=cpu, resume=True and hash_every= stay.", "device=cpu, resume=True and hash_every= stay."),
        ("`bands=4` is none of its options.", "`bands=4` is none of its options."),
        ("simulate with `fields=('a', 'b')`.", "simulate with --field a --field b."),
        ("verify with `inputs=DIR`.", "verify with --inputs DIR."),
        ("`portable=True` has no flag.", "`portable=True` has no flag."),
        ("`numpy.savez(f, A=A)` is a call.", "`numpy.savez(f, A=A)` is a call."),
    ],
)
def test_only_keyword_arguments_in_backticks_become_flags(text: str, shown: str) -> None:
    result = CliRunner().invoke(_command(text), ["do", "certificate.json"])
    assert isinstance(result.exception, InputError)
    assert result.exception.what == shown
    assert result.stderr == f"{shown}\n"


def test_the_fix_is_translated_too() -> None:
    result = CliRunner().invoke(_command("no.", "ask with `hash_every=100`."), ["do", "c"])
    assert isinstance(result.exception, InputError)
    assert result.exception.fix == "ask with --hash-every 100."


@pytest.mark.parametrize(
    ("words", "flags", "meant"),
    [
        ("--fast --steps 4", {"--host-fft", "--steps"}, "--host-fft --steps 4"),
        ("--fast --way tagged", {"--no-portable", "--strategy"}, "--no-portable --strategy tagged"),
        ("--way=tagged -- --fast", {"--host-fft", "--strategy"}, "--strategy=tagged -- --fast"),
        ("--fast --way tagged", {"--fast", "--steps"}, "--fast --way tagged"),
    ],
)
def test_flags_that_were_renamed_are_still_read(words: str, flags: set[str], meant: str) -> None:
    assert renamed_flags(words.split(), flags) == meant.split()


def test_outside_of_commands_parameters_stay() -> None:
    with speaking_of_flags([]):
        assert in_flags("`resume=True`") == "`resume=True`"
    assert in_flags("`resume=True`") == "`resume=True`"
