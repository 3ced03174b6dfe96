"""Benchmark cases fit the device that they are measured on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dashi import kernels
from dashi.bench.workloads import WorkLimit, Workload, fits, host_inputs, shrink, workloads
from dashi.errors import InputError
from dashi.kernels.abi import Case, Kernel, Limits
from dashi.runtime._cpu_device import CpuDevice

WIDE = Limits(storage_range=1 << 30)


def test_large_cases_are_halved_until_they_fit(twice: Kernel) -> None:
    asked = Workload(twice, "f32", twice.bench[0], 0)
    room = WorkLimit(1 << 20, 1 << 62)
    assert not fits(asked, Limits(), room)
    made = shrink(asked, WIDE, room)
    assert made is not None
    assert made.case.shapes == {"x": (1 << 17,)}
    bound = shrink(asked, Limits(storage_range=4096), WorkLimit(1 << 40, 1 << 62))
    assert bound is not None
    assert bound.case.shapes == {"x": (1024,)}


def test_dimensions_that_are_shared_stay_equal_when_halved() -> None:
    gemm = kernels.get("gemm_tiled")
    asked = Workload(gemm, "f32", Case({"a": (4096, 1024), "b": (1024, 100)}), 0)
    made = shrink(asked, WIDE, WorkLimit(1 << 40, 1 << 20))
    assert made is not None
    (m, k), (same, n) = made.case.shapes["a"], made.case.shapes["b"]
    assert k == same
    assert 1 << 19 < 2 * m * n * k <= 1 << 20


def test_cases_with_index_lists_are_replaced_not_cut() -> None:
    gather = kernels.get("gather")
    big = replace(gather.cases[-1], shapes={"x": (1 << 27,), "index": (1 << 27,)})
    with CpuDevice() as device:
        (result,) = workloads(replace(gather, bench=(big,)), "f32", device, "full")
    assert result.case in gather.cases
    assert result.number is None
    assert result.note == "instead of x[134217728] index[134217728]"


def test_small_means_the_largest_ordinary_case(twice: Kernel) -> None:
    with CpuDevice() as device:
        (small,) = workloads(twice, "f32", device, "small")
        full = workloads(twice, "f32", device, "full")
        (chosen,) = workloads(twice, "f32", device, "full", 1)
        with pytest.raises(InputError) as error:
            workloads(twice, "f32", device, "full", 2)
    assert (small.case, small.number) == (twice.cases[1], None)
    assert [w.number for w in full] == [0, 1]
    assert full[0].note == "scaled down from x[268435456]"
    assert (chosen.case, chosen.note) == (twice.bench[1], "")
    assert error.value.what == "kernel 'twice' has no benchmark case 2; it has 2, counted from 0."


def test_cases_that_become_alike_are_measured_once(twice: Kernel) -> None:
    alike = replace(twice, bench=(twice.bench[0], Case({"x": (1 << 27,)}), twice.bench[1]))
    with CpuDevice() as device:
        assert [w.number for w in workloads(alike, "f32", device, "full")] == [0, 2]


def test_large_inputs_repeat_a_random_block(twice: Kernel) -> None:
    case = Case({"x": (3, 1 << 20)})
    (x,) = host_inputs(Workload(twice, "f64", case, None))
    assert (x.shape, x.dtype) == ((3, 1 << 20), np.float64)
    assert np.array_equal(x[0], x[2])
    assert 0.99 < float(np.std(x[1].astype(np.float64))) < 1.01
