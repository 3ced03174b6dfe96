"""A kernel with three tunings, and a torch that NumPy computes."""

from __future__ import annotations

import contextlib
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dashi.kernels import _build as build
from dashi.kernels import _compiler as compiler
from dashi.kernels import _registry as registry
from dashi.kernels.abi import Kernel
from dashi.runtime import _stopwatch as stopwatch
from dashi.runtime import _tuning as tuning

SHADER = """
void main() {
    for (uint i = gl_GlobalInvocationID.x; i < n; i += stride) {
        result[i] = canon(x[i]) + canon(x[i]);
    }
}
"""
KERNEL = """
from dashi.kernels.abi import Binding, Case, Dispatch, Kernel, Operand, Plan, Scalar, Shader, Spec
from dashi.kernels.portable import canon
from dashi.kernels._work import groups_for
from dashi.types import Cost


def plan(call):
    width, n = call.tuning["width"], call.size("result")
    groups, trips = groups_for(n, width, call.limits)
    push = {"n": n, "stride": groups * width}
    return Plan((Dispatch("main", ("x", "result"), push, (groups, 1, 1), trips, {"WIDTH": width}),))


KERNEL = Kernel(
    summary="x + x",
    inputs=(Operand("x"),),
    outputs=(Operand("result"),),
    shaders={
        "main": Shader(
            (Binding("x"), Binding("result", access="write")),
            (Scalar("n", "u32"), Scalar("stride", "u32")),
            (Spec("WIDTH", 64),),
            local=("WIDTH", 1, 1),
            includes=("portable.glsl",),
        )
    },
    plan=plan,
    reference=lambda x: canon(canon(x) + canon(x)),
    cost=lambda call: Cost(call.size("x"), call.bytes("x", "result"), 1),
    cases=(Case({"x": (100,)}), Case({"x": (3000,)})),
    bench=(Case({"x": (1 << 28,)}), Case({"x": (1 << 12,)})),
    tunings={"narrow": {"width": 32}, "wide": {"width": 128}, "huge": {"width": 1 << 16}},
    prefer=lambda limits, variant: "wide" if limits.software else "narrow",
    in_place=True,
)
"""


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kernel folder outside the project, with three tunings; the third fits no device."""
    result = tmp_path_factory.mktemp("kernels") / "twice"
    result.mkdir()
    (result / "kernel.comp").write_text(SHADER)
    (result / "kernel.py").write_text(KERNEL)
    if compiler.available():
        build.build(registry.read(result))
    return result


@pytest.fixture
def twice(folder: Path) -> Kernel:
    return registry.read(folder)


@pytest.fixture
def built(twice: Kernel) -> Kernel:
    """The same, where it could be built."""
    if not compiler.available():
        pytest.skip("the compiler of dashi-compute[compile] is not installed")
    return twice


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is remembered here is forgotten after the test; what others remember is not seen."""
    monkeypatch.setenv("DASHI_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv(tuning.ENVIRONMENT, raising=False)


class Tensor:
    """What the peers use of a tensor, on NumPy."""

    def __init__(self, values: Any) -> None:
        self.values = np.asarray(values)
        self.shape, self.dtype, self.device = self.values.shape, self.values.dtype, "cuda"

    def reshape(self, *shape: int) -> Tensor:
        return Tensor(self.values.reshape(*shape))

    def transpose(self, one: int, other: int) -> Tensor:
        return Tensor(np.swapaxes(self.values, one, other))

    def numpy(self) -> Any:
        return self.values

    def to(self, device: str) -> Tensor:
        return Tensor(self.values.copy())

    def cpu(self) -> Tensor:
        return self

    def copy_(self, other: Tensor) -> Tensor:
        self.values[...] = other.values
        return self

    def __matmul__(self, other: Tensor) -> Tensor:
        return Tensor(self.values @ other.values)

    def __getattr__(self, name: str) -> Callable[[], Tensor]:
        if name not in ("sum", "max", "min", "argmax", "argmin"):
            raise AttributeError(name)
        return lambda: Tensor(getattr(self.values, name)())


def csr(offsets: Tensor, columns: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    dense = np.zeros(shape, values.dtype)
    rows = np.repeat(np.arange(shape[0]), np.diff(offsets.values))
    np.add.at(dense, (rows, columns.values), values.values)
    return Tensor(dense)


def attended(q: Tensor, k: Tensor, v: Tensor, *, attn_mask: Any, is_causal: bool, scale: float, **_: Any) -> Tensor:
    shared = q.shape[1] // k.shape[1]
    keys, values = (np.repeat(x.values, shared, axis=1) for x in (k, v))
    scores = scale * (q.values @ keys.swapaxes(-1, -2))
    mask = np.tri(*scores.shape[2:], dtype=bool) if is_causal else True if attn_mask is None else attn_mask.values
    weights = np.exp(np.where(mask, scores, -np.inf))
    return Tensor((weights / weights.sum(axis=-1, keepdims=True)) @ values)


class FakeCuda:
    """CUDA whose every timing is `ms` milliseconds; `captured` and `replayed` count graphs."""

    def __init__(self) -> None:
        self.captured = self.replayed = 0
        self.ms = 0.001

    def is_available(self) -> bool:
        return True

    def get_device_name(self, index: int) -> str:
        return "NVIDIA Made Up"

    def synchronize(self) -> None: ...

    def empty_cache(self) -> None: ...

    def Event(self, enable_timing: bool) -> Any:
        return types.SimpleNamespace(record=lambda: None, synchronize=lambda: None, elapsed_time=lambda other: self.ms)

    def CUDAGraph(self) -> Any:
        def replay() -> None:
            self.replayed += 1

        return types.SimpleNamespace(replay=replay, reset=lambda: None)

    def graph(self, graph: Any) -> Any:
        self.captured += 1
        return contextlib.nullcontext()


def fake_torch() -> Any:
    """A module with torch's names and NumPy's results."""

    def into(function: Callable[..., Any]) -> Callable[..., Tensor]:
        def call(*operands: Any, out: Tensor, **named: Any) -> Tensor:
            plain = [o.values if isinstance(o, Tensor) else o for o in operands]
            out.values[...] = function(*plain, **named)
            return out

        return call

    return types.SimpleNamespace(
        __version__="0.0",
        float32=np.float32,
        cuda=FakeCuda(),
        backends=types.SimpleNamespace(cuda=types.SimpleNamespace(matmul=types.SimpleNamespace(allow_tf32=True))),
        nn=types.SimpleNamespace(
            functional=types.SimpleNamespace(
                softplus=lambda x: Tensor(np.logaddexp(0, x.values).astype(x.dtype)),
                scaled_dot_product_attention=attended,
            )
        ),
        linalg=types.SimpleNamespace(vector_norm=lambda x: Tensor(np.linalg.norm(x.values))),
        from_numpy=Tensor,
        zeros=lambda n, dtype, device: Tensor(np.zeros(n, dtype)),
        empty=lambda shape, dtype, device: Tensor(np.empty(shape, dtype)),
        empty_like=lambda x: Tensor(np.empty_like(x.values)),
        full=lambda shape, value, dtype, device: Tensor(np.full(shape, value, dtype)),
        add=into(lambda x, y, alpha=1: x + alpha * y),
        sub=into(np.subtract),
        mul=into(np.multiply),
        addcmul=into(lambda z, x, y: z + x * y),
        clamp=into(np.clip),
        clamp_min=into(np.maximum),
        tanh=into(np.tanh),
        sigmoid=into(lambda x: 1 / (1 + np.exp(-x))),
        cumsum=into(lambda x, axis: np.cumsum(x, axis)),
        index_select=into(lambda x, axis, index: x[np.minimum(index, len(x) - 1)]),
        mm=into(np.matmul),
        bmm=into(np.matmul),
        matmul=into(np.matmul),
        sparse_csr_tensor=csr,
    )


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Any:
    fake = fake_torch()
    monkeypatch.setitem(sys.modules, "torch", fake)
    monkeypatch.setattr(stopwatch, "HARDWARE", stopwatch.Effort(batch=5000, warm=0, total=1, runs=2))
    return fake
