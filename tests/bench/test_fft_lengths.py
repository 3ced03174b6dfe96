"""Claims about `dashi bench fft --n`: fields of any sides, checked first, and what is no length."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from dashi.cli.main import app


def bench(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["bench", "fft", "--device", "cpu", *words])
    return done.exit_code, done.output


def test_fields_of_any_sides_are_measured_and_checked() -> None:
    code, output = bench("--n", "13,12", "--n", "5", "--dtype", "float64", "--json")
    assert code == 0, output
    rows = json.loads(output[output.index("{") :])["rows"]
    assert [row["case"] for row in rows] == [f"{kind} {n}^2, fp64" for n in (13, 12, 5) for kind in ("fft2", "rfft2")]
    assert all(time["checked"] == "same bits as NumPy" for row in rows for time in row["times"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--n", "0"), "no Fourier transform of 0 values"),
        (("--n", "1000003"), "no Fourier transform of 1000003 values"),
        (("--n", "9" * 5000), "is no length"),
        (("--n", "12,x"), "--n x is no length"),
        (("--n", "12", "--case", "0"), "--n and --case both say what is measured"),
    ],
)
def test_what_is_no_length_is_refused(words: tuple[str, ...], said: str) -> None:
    code, output = bench(*words)
    assert code != 0
    assert said in output
    assert "Fix:" in output
