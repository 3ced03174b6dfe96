"""A peer does the same work on the same data, and says when it cannot."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dashi import kernels
from dashi.bench import results
from dashi.bench.kernels import measure
from dashi.bench.peers import kernels as peers
from dashi.bench.workloads import Workload
from dashi.errors import InputError
from dashi.runtime._cpu_device import CpuDevice

COMPARED = sorted(set(peers.PEERS) & set(kernels.names()))


@pytest.mark.parametrize("name", COMPARED)
def test_a_peer_computes_what_the_kernel_computes(name: str, torch: Any) -> None:
    kernel = kernels.get(name)
    case = next(c for c in kernel.cases if all(math.prod(s) > 60 for s in c.shapes.values()))
    tame = {s.name: 2.0 if s.name == "hi" else 0.5 for s in kernel.scalars if s.dtype == "T"}
    workload = Workload(kernel, kernel.dtypes[0], replace(case, scalars={**case.scalars, **tame}), None)
    with CpuDevice() as device:
        (measurement,) = measure(device, workload, peer=peers.load("torch"))
    assert measurement.failed == ""
    assert measurement.peer is not None
    assert measurement.peer.difference is not None
    # Half precision rounds at 2^-11, and sums of it are rounded once more.
    assert measurement.peer.difference < (1e-2 if workload.variant == "f16" else 1e-4)


def test_short_peers_run_in_a_graph_and_long_ones_eagerly(torch: Any) -> None:
    peer = peers.load("torch")
    kernel = kernels.get("reduce_sum")
    x = np.ones(100, np.float32)
    assert torch.backends.cuda.matmul.allow_tf32 is False
    short = peer.measure(kernel, [x], {}, sets=3)
    assert short is not None
    assert (short.how, short.times.calls % 3) == ("CUDA graph", 0)
    assert torch.cuda.captured > 0
    assert torch.cuda.replayed > 0
    torch.cuda.ms = 10.0
    long = peer.measure(kernel, [x], {})
    assert long is not None
    assert (long.how, long.times.median) == ("eager", pytest.approx(0.01))
    assert long.result.tolist() == [100.0]
    assert peer.measure(kernels.get("hash_state"), [x], {}) is None
    assert peer.copy_bandwidth(1000) == pytest.approx(2 * 1000 / 0.01)


def test_work_that_a_graph_cannot_hold_runs_eagerly(torch: Any) -> None:
    def refuse(graph: Any) -> Any:
        raise RuntimeError("operation not permitted when stream is capturing")

    torch.cuda.graph = refuse
    found = peers.load("torch").measure(kernels.get("reduce_max"), [np.ones(100, np.float32)], {})
    assert found is not None
    assert found.how == "eager"


def test_a_peer_that_fails_leaves_our_numbers(torch: Any) -> None:
    def refuse(*operands: Any, **named: Any) -> Any:
        raise RuntimeError("CUDA out of memory.\nTried to allocate")

    torch.add = refuse
    kernel = kernels.get("add")
    with CpuDevice() as device:
        (found,) = measure(device, Workload(kernel, "f32", kernel.cases[-1], None), peer=peers.load("torch"))
    assert found.times is not None
    row = results.row(found, 1e9, None)
    assert row["peer"]["failed"] == "RuntimeError: CUDA out of memory."
    assert row["peer"]["us"] is None
    assert "failed" in results.cells(row, "torch")


def test_a_peer_that_is_not_there_is_told_with_a_fix(monkeypatch: pytest.MonkeyPatch, torch: Any) -> None:
    with pytest.raises(InputError) as error:
        peers.load("jax")
    assert str(error.value) == "there is no peer 'jax'. Fix: use torch."
    torch.cuda.is_available = lambda: False
    with pytest.raises(InputError) as error:
        peers.load("torch")
    assert error.value.what == "torch 0.0 finds no GPU here."
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(InputError) as error:
        peers.load("torch")
    assert error.value.what == "torch is not installed, and the peer's times come from it."
