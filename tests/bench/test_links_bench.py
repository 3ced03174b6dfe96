"""Rates of links: each way that two devices have, a row each, and the command that prints them."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from dashi import errors
from dashi.bench import links
from dashi.cli.main import app
from dashi.runtime import _bandwidth as bandwidth
from dashi.runtime._cpu_device import CpuDevice


@pytest.fixture(autouse=True)
def small_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """The yardstick is not what is tested here."""
    monkeypatch.setattr(bandwidth, "_SOFTWARE_BYTES", 1 << 20)


def test_every_way_has_a_row() -> None:
    with CpuDevice() as first, CpuDevice() as second:
        rows = list(links.measure(first, second, [4096], seconds=0.01))
    assert [(row.way, row.mode, row.nbytes) for row in rows] == [
        ("host", "HOST_STAGING", 4096), ("staging", "HOST_STAGING", 4096),
    ]  # fmt: skip
    for row in rows:
        assert row.rate.bandwidth > 0
        assert row.of_copy == pytest.approx(row.rate.bandwidth / min(row.copies))


def test_the_command_prints_a_document() -> None:
    done = CliRunner().invoke(app, ["bench", "links", "--device", "cpu", "--size", "4096", "--json"])
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert (document["source"], document["target"], document["window"]) == ("cpu", "cpu", 3)
    assert [row["way"] for row in document["rows"]] == ["host", "staging"]
    assert {"gb_per_s", "latency_us", "copy_gb_per_s", "of_copy", "dma", "mode", "bytes"} <= document["rows"][0].keys()


def test_no_bytes_are_no_size() -> None:
    with pytest.raises(errors.InputError, match=r"sizes=\[0\] names no bytes to send\. Fix: pass `sizes=`"):
        next(links.measure("cpu", "cpu", [0]))
