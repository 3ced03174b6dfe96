"""A control buffer: small values, fed with every run, that kernels read; the recording is made for the most rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dashi
from dashi import kernels
from dashi.kernels import _compiler as compiler
from dashi.kernels._registry import Registry
from dashi.kernels.abi import Kernel
from dashi.kernels.expressions import arguments, where
from dashi.runtime import Device
from dashi.runtime._vulkan_device import VulkanDevice

SHADER = """
// control: rows in use, and what is added to them. Invocations past the rows in use leave at once.
void main() {
    uint row = gl_WorkGroupID.x;
    if (row >= control[0]) {
        return;
    }
    for (uint i = gl_LocalInvocationID.x; i < n; i += LOCAL) {
        result[row * n + i] = x[row * n + i] + control[1];
    }
}
"""
PYTHON = '''
"""add_rows: control[1] added to the first control[0] rows; what the others hold is undefined."""

import numpy as np

from dashi.kernels.abi import Binding, Call, Case, Dispatch, Kernel, Operand, Plan, Scalar, Shader, Spec
from dashi.types import Cost, HostArray


def reference(x: HostArray, control: HostArray) -> HostArray:
    result = x.copy()
    result[: control[0]] += control[1]
    return result


def plan(call: Call) -> Plan:
    rows, n = call.dims["rows"], call.dims["n"]
    return Plan((Dispatch("main", ("x", "control", "result"), {"n": n}, (rows, 1, 1), -(-n // 64)),))


KERNEL = Kernel(
    summary="control[1] added to the first control[0] rows",
    inputs=(Operand("x", shape=("rows", "n")), Operand("control", "u32", (2,))),
    outputs=(Operand("result", shape=("rows", "n")),),
    shaders={
        "main": Shader(
            (Binding("x"), Binding("control", "u32"), Binding("result", access="readwrite")),
            (Scalar("n", "u32"),),
            (Spec("LOCAL", 64),),
            local=("LOCAL", 1, 1),
        )
    },
    plan=plan,
    reference=reference,
    cost=lambda call: Cost(dispatches=1),
    cases=(Case({"x": (1, 1), "control": (2,)}, fill={"control": lambda rng, shape: np.ones(shape, np.uint32)}),),
    dtypes=("u32",),
)
'''


def formulas_of_used_rows() -> dict[str, tuple[Kernel, bool]]:
    """Kernels of every template that read (x, row or column, rows in use), and whether they read columns."""
    x, place, used, value = arguments("x place used value")
    counts = {"place": "u32", "used": "u32"}
    return {
        "fuse": (kernels.fuse(where(place < used, x * 2, -1.0), inputs="x place used", types=counts), False),
        "reduce_rows": (kernels.reduce_rows("sum", where(place < used, x, 0.0), axes=0, inputs="x place used"), False),
        "row_map": (kernels.row_map("softmax", where(place < used, x, -np.inf), inputs="x place used"), True),
        "fuse_product": (kernels.fuse_product(where(place < used, value, 0.0), inputs="place used"), False),
    }


def of_used_rows(name: str, x: np.ndarray, used: int) -> np.ndarray:
    """What they compute of the parts in use."""
    if name == "row_map":
        part = np.exp(x[:, :used] - x[:, :used].max(1, keepdims=True))
        return np.hstack([part / part.sum(1, keepdims=True), np.zeros((x.shape[0], x.shape[1] - used))])
    padded = np.zeros_like(x)
    padded[:used] = x[:used]
    if name == "reduce_rows":
        return padded.sum(0)
    return np.where(np.arange(x.shape[0])[:, None] < used, 2 * x, -1) if name == "fuse" else padded


@pytest.mark.parametrize("direct", [False, True])
@pytest.mark.parametrize("name", [*formulas_of_used_rows()])
def test_formulas_read_how_many_rows_are_in_use(device: Device, name: str, direct: bool) -> None:
    kernel, columns = formulas_of_used_rows()[name]
    counts = np.uint32 if name == "fuse" else np.float32
    values = np.random.default_rng(1).standard_normal((6, 6)).astype(np.float32)
    places = np.arange(6).reshape((1, 6) if columns else (6, 1)).astype(counts)
    x, used = device.array(values), device.zeros((1, 1), counts)
    first = (x, device.array(np.eye(6, dtype=np.float32))) if name == "fuse_product" else (x,)
    step = device.bind(kernel, *first, device.array(places), used)
    with device.program([step], feed=[used], fetch=[step.outputs[0]], slots=3, direct=direct) as program:
        tickets = [program.submit(feed={used: np.full((1, 1), k, counts)}) for k in (6, 1, 3)]
        for k, ticket in zip((6, 1, 3), tickets, strict=True):
            fetched = np.asarray(ticket.fetched(step.outputs[0]), np.float32)
            np.testing.assert_allclose(fetched, of_used_rows(name, values, k), rtol=2e-6, atol=1e-6)
            alone = device.run(kernel, *first, device.array(places), np.full((1, 1), k, counts))
            assert fetched.tobytes() == alone.numpy().tobytes()


@pytest.fixture(scope="module")
def add_rows(tmp_path_factory: pytest.TempPathFactory) -> Kernel:
    if not compiler.available():
        pytest.skip("the compiler of dashi-compute[compile] is not installed")
    folder: Path = tmp_path_factory.mktemp("kernels") / "add_rows"
    folder.mkdir()
    (folder / "kernel.py").write_text(PYTHON)
    (folder / "kernel.comp").write_text(SHADER)
    return Registry().add(folder)


def test_one_recording_serves_any_number_of_rows(device: Device, add_rows: Kernel) -> None:
    rows, n = 6, 100
    values = np.arange(rows * n, dtype=np.uint32).reshape(rows, n)
    x, control = device.array(values), device.zeros(2, np.uint32)
    step = device.bind(add_rows, x, control)
    with device.program([step], feed=[control], fetch=[step.outputs[0]], slots=3) as program:
        tickets = [program.submit(feed={control: np.array([k, 10 * k], np.uint32)}) for k in (6, 0, 2)]
        for k, ticket in zip((6, 0, 2), tickets, strict=True):
            assert np.array_equal(ticket.fetched(step.outputs[0])[:k], values[:k] + 10 * k)


@pytest.mark.parametrize("direct", [False, True])
def test_invocations_past_the_rows_in_use_leave_at_once(vulkan: VulkanDevice, add_rows: Kernel, direct: bool) -> None:
    x, control = vulkan.array(np.zeros((6, 10), np.uint32)), vulkan.zeros(2, np.uint32)
    out = vulkan.array(np.full((6, 10), 77, np.uint32))
    step = vulkan.bind(add_rows, x, control, out=out)
    with vulkan.program([step], feed=[control], fetch=[out], direct=direct) as program:
        tickets = [program.submit(feed={control: np.array([rows, 5], np.uint32)}) for rows in (2, 1)]
        assert [ticket.fetched(out)[:, 0].tolist() for ticket in tickets] == [[5, 5, 77, 77, 77, 77]] * 2
        assert not direct or (program.copied_feeds, program.copied_fetches) == (("",), ("add_rows reads it",))
    assert out.numpy()[:, 0].tolist() == [5, 5, 77, 77, 77, 77]


ROWS_OF_TYPES = """
void main() {
    uint rows = uint(control[0]);
    for (uint i = gl_GlobalInvocationID.x; i < items && i / n < rows; i += stride) {
        result[i] = U(x[i]) + U(control[1]);
    }
}
"""


@pytest.mark.parametrize("counts", [np.uint32, np.int64])
@pytest.mark.parametrize("kind", [np.int32, np.uint64])
def test_kernels_from_text_read_rows_in_use_of_any_type(
    vulkan: VulkanDevice, counts: type[np.integer], kind: type[np.integer], monkeypatch: pytest.MonkeyPatch, here: Path
) -> None:
    monkeypatch.setenv("DASHI_CACHE_DIR", str(here))
    add = dashi.kernel(
        ROWS_OF_TYPES,
        inputs="x:U[rows,n] control:C[2]",
        outputs="result:U[rows,n]",
        types={"U": ("i32", "u32", "u64"), "C": ("u32", "i64")},
        name="add_used",
    )
    x, control = vulkan.array(np.arange(60).reshape(6, 10).astype(kind)), vulkan.zeros(2, counts)
    out = vulkan.array(np.full((6, 10), 77, kind))
    with vulkan.program([vulkan.bind(add, x, control, out=out)], feed=[control], direct=True) as program:
        for rows in (3, 0):
            program.run(feed={control: np.array([rows, 5], counts)})
        assert np.array_equal(out.numpy()[:3], np.arange(30).reshape(3, 10) + 5)
        assert (out.numpy()[3:] == 77).all()
