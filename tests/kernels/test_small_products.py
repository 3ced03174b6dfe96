"""Small products and small matrix-vector products: how they are cut for a device with many processors."""

from dataclasses import replace

import pytest

from dashi import kernels
from dashi.kernels._calls import resolve_call
from dashi.kernels.abi import Dispatch, Limits
from dashi.types import Shape

DEVICE = Limits(groups=2**31 - 1, invocations=1024, shared_bytes=49152)
LEAST = Limits()
"""What every device has."""


def planned(name: str, shapes: list[Shape], limits: Limits, variant: str = "f32") -> tuple[Dispatch, ...]:
    kernel = kernels.get(name)
    tuning = next(iter(kernel.tunings)) if kernel.prefer is None else kernel.prefer(limits, variant)
    call = resolve_call(kernel, variant, shapes, {})
    return kernel.plan(replace(call, limits=limits, tuning=kernel.tunings[tuning])).dispatches


@pytest.mark.parametrize("name", ["gemm_tiled", "gemm_fast"])
@pytest.mark.parametrize(("m", "n"), [(256, 654), (256, 1024), (512, 512)])
def test_a_small_product_keeps_most_of_a_device_busy(name: str, m: int, n: int) -> None:
    (dispatch,) = planned(name, [(m, n), (n, n)], DEVICE)
    assert dispatch.groups[0] >= 120


@pytest.mark.parametrize("name", ["gemm_tiled", "gemm_fast"])
def test_a_large_product_keeps_its_large_tiles(name: str) -> None:
    (dispatch,) = planned(name, [(4096, 4096), (4096, 4096)], DEVICE)
    assert not dispatch.shader.startswith("small_")


@pytest.mark.parametrize("variant", ["f32", "f64"])
@pytest.mark.parametrize("limits", [DEVICE, LEAST])
def test_the_shape_of_a_small_product_fits_the_device(limits: Limits, variant: str) -> None:
    for shapes in ([(256, 654), (654, 654)], [(35, 4096), (4096, 5)], [(70, 33), (33, 129)]):
        for dispatch in planned("gemm_tiled", shapes, limits, variant):
            spec = dispatch.spec
            assert dispatch.shader.startswith("small_")
            assert spec["ACROSS"] * spec["DOWN"] * spec["GROUPS"] <= limits.invocations
            assert spec["POOL"] * (16 if variant == "f32" else 32) + 8 <= limits.shared_bytes


@pytest.mark.parametrize("variant", ["f32", "f64"])
@pytest.mark.parametrize("limits", [DEVICE, LEAST])
def test_the_shape_of_a_product_of_few_rows_fits_the_device(limits: Limits, variant: str) -> None:
    for m, k, n in ((2, 4096, 4096), (3, 4096, 5), (7, 4097, 4099), (16, 2048, 8192), (32, 8192, 2048), (24, 100, 64)):
        for dispatch in planned("gemm_tiled", [(m, k), (k, n)], limits, variant):
            lanes, depth = dispatch.spec["LANES"], dispatch.spec["DEPTH"]
            assert dispatch.shader.startswith("few_")
            assert lanes * depth <= limits.invocations
            assert depth * 4 * lanes * 16 < limits.shared_bytes


@pytest.mark.parametrize("name", ["gemm_tiled", "gemm_fast"])
def test_a_product_of_one_row_is_planned_as_a_vector_times_a_matrix(name: str) -> None:
    for k, n in ((300, 70), (4096, 4096), (16384, 4096)):
        of_vector = planned("gemv", [(k,), (k, n)], DEVICE)
        of_row = planned(name, [(1, k), (k, n)], DEVICE)
        assert [(d.shader, d.groups, d.spec) for d in of_row] == [
            (f"row_{d.shader}", d.groups, d.spec) for d in of_vector
        ]


@pytest.mark.parametrize(("d", "shader"), [(128, "held"), (654, "held"), (1024, "held"), (4096, "held_vectors")])
def test_a_small_matrix_takes_one_pass(d: int, shader: str) -> None:
    (dispatch,) = planned("gemv", [(d,), (d, d)], DEVICE)
    assert dispatch.shader == shader


def test_a_large_matrix_is_not_held() -> None:
    assert all("held" not in dispatch.shader for dispatch in planned("gemv", [(8192,), (8192, 8192)], DEVICE))
