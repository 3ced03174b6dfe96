"""Kernels' work by another library, in the same process, on the same data. torch is imported only when asked for.

Vulkan and CUDA share the GPU, so their timings never overlap: a peer starts when our device is idle, and waits for its
own work before it returns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dashi.bench.peers.cuda_timing import CudaGraph, Timed, Work
from dashi.bench.peers.gpu_library import load_library
from dashi.kernels.abi import Kernel, Number
from dashi.runtime import _stopwatch as stopwatch
from dashi.types import HostArray

Tensors = Mapping[str, Any]
Scalars = Mapping[str, Number]
Maker = Callable[[Any, Tensors, Scalars], Work]
"""Given torch, the inputs on the GPU by name and the scalars: a function that does the work and returns its result."""

NAMES: Final = ("torch",)
_SHORT: Final = 200_000
"""Nanoseconds; calls that take less are replayed from a CUDA graph, so that launching them is not what is timed."""


@dataclass(frozen=True)
class PeerTimes:
    """What a peer took for one call, how it was run, and what it computed (its first output)."""

    times: stopwatch.Times
    how: str
    result: HostArray


def _into(name: str, *operands: str, **arguments: str) -> Maker:
    """`torch.<name>(operands, arguments, out=...)`; arguments are named after scalars."""

    def make(torch: Any, t: Tensors, s: Scalars) -> Work:
        call = getattr(torch, name)
        values = [t[o] if o in t else s[o] for o in operands]
        named = {argument: s[scalar] for argument, scalar in arguments.items()}
        out = torch.empty_like(t[next(o for o in operands if o in t)])
        return lambda: call(*values, **named, out=out)

    return make


def _reduced(name: str) -> Maker:
    def make(torch: Any, t: Tensors, s: Scalars) -> Work:
        x = t["x"].reshape(-1)
        return lambda: getattr(x, name)()

    return make


def _affine(torch: Any, t: Tensors, s: Scalars) -> Work:
    x, out = t["x"], torch.empty_like(t["x"])
    offset = torch.full((), s["b"], dtype=x.dtype, device=x.device)
    return lambda: torch.add(offset, x, alpha=s["a"], out=out)


def _relu(torch: Any, t: Tensors, s: Scalars) -> Work:
    out = torch.empty_like(t["x"])
    return lambda: torch.clamp_min(t["x"], 0, out=out)


def _softplus(torch: Any, t: Tensors, s: Scalars) -> Work:
    return lambda: torch.nn.functional.softplus(t["x"])


def _scan(torch: Any, t: Tensors, s: Scalars) -> Work:
    x = t["x"].reshape(-1)
    out = torch.empty_like(x)
    return lambda: torch.cumsum(x, 0, out=out)


def _norm(torch: Any, t: Tensors, s: Scalars) -> Work:
    x = t["x"].reshape(-1)
    return lambda: torch.linalg.vector_norm(x)


def _gather(torch: Any, t: Tensors, s: Scalars) -> Work:
    out = torch.empty(t["index"].shape, dtype=t["x"].dtype, device=t["x"].device)
    return lambda: torch.index_select(t["x"], 0, t["index"], out=out)


def _gemv(torch: Any, t: Tensors, s: Scalars) -> Work:
    row = t["x"].reshape(1, -1)
    out = torch.empty((1, t["A"].shape[1]), dtype=row.dtype, device=row.device)
    return lambda: torch.mm(row, t["A"], out=out)


def _gemv_batched(torch: Any, t: Tensors, s: Scalars) -> Work:
    matrices = t["A"]
    rows = t["x"].reshape(matrices.shape[0], 1, -1)
    out = torch.empty((matrices.shape[0], 1, matrices.shape[2]), dtype=rows.dtype, device=rows.device)
    return lambda: torch.bmm(rows, matrices, out=out)


def _gemm(torch: Any, t: Tensors, s: Scalars) -> Work:
    a, b = t.values()
    out = torch.empty((a.shape[0], b.shape[1]), dtype=a.dtype, device=a.device)
    return lambda: torch.mm(a, b, out=out)


def _matmul(torch: Any, t: Tensors, s: Scalars) -> Work:
    a, b = (t[name].transpose(-1, -2) if s[f"transpose_{name}"] else t[name] for name in "ab")
    shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
    out = torch.empty(shape, dtype=a.dtype, device=a.device)
    return lambda: torch.matmul(a, b, out=out)


def _attention(torch: Any, t: Tensors, s: Scalars) -> Work:
    q, k, v = (t[name].transpose(1, 2) if s["heads_last"] else t[name] for name in "qkv")
    queries, keys, offset, window = (int(n) for n in (q.shape[2], k.shape[2], s["offset"], s["window"]))
    # Key minus position, for every query and key.
    behind = np.arange(keys)[None, :] - np.arange(queries)[:, None] - offset
    counted = (behind <= (0 if s["causal"] else keys)) & (behind > -(window or keys + queries + offset))
    square = bool(s["causal"]) and not window and not offset and queries == keys
    mask = None if square or counted.all() else torch.from_numpy(np.ascontiguousarray(counted)).to("cuda")
    call = torch.nn.functional.scaled_dot_product_attention
    options = {"attn_mask": mask, "is_causal": square, "scale": s["scale"], "enable_gqa": q.shape[1] != k.shape[1]}
    return lambda: _turned(call(q, k, v, **options), s["heads_last"])


def _turned(result: Any, heads_last: Any) -> Any:
    return result.transpose(1, 2) if heads_last else result


def _spmv(torch: Any, t: Tensors, s: Scalars) -> Work:
    offsets, columns, values, x = (t[name] for name in ("offsets", "columns", "values", "x"))
    shape = (offsets.shape[0] - 1, x.shape[0])
    matrix = torch.sparse_csr_tensor(offsets, columns, values, shape)
    column = x.reshape(-1, 1)
    return lambda: matrix @ column


PEERS: Final[Mapping[str, Maker]] = {
    "add": _into("add", "x", "y"),
    "sub": _into("sub", "x", "y"),
    "mul": _into("mul", "x", "y"),
    "scale": _into("mul", "x", "a"),
    "axpy": _into("add", "y", "x", alpha="a"),
    "affine": _affine,
    "fma3": _into("addcmul", "z", "x", "y"),
    "clamp": _into("clamp", "x", "lo", "hi"),
    "relu": _relu,
    "tanh": _into("tanh", "x"),
    "sigmoid": _into("sigmoid", "x"),
    "softplus": _softplus,
    "gather": _gather,
    "reduce_sum": _reduced("sum"),
    "reduce_max": _reduced("max"),
    "reduce_min": _reduced("min"),
    "reduce_argmax": _reduced("argmax"),
    "reduce_argmin": _reduced("argmin"),
    "reduce_l2": _norm,
    "prefix_scan": _scan,
    "gemv": _gemv,
    "gemv_batched": _gemv_batched,
    "gemm_scalar": _gemm,
    "gemm_tiled": _gemm,
    "gemm_fast": _gemm,
    "gemm_coop": _gemm,
    "matmul": _matmul,
    "attention": _attention,
    "spmv_csr": _spmv,
}
"""By kernel. A kernel that is not here has no peer that does the same work in one call."""

_EAGER: Final = frozenset({"spmv_csr"})
"""Work whose library allocates as it runs, which a graph does not allow."""


class TorchPeer:
    """torch on the first CUDA device."""

    name = "torch"

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self.version = str(torch.__version__)
        self.device = str(torch.cuda.get_device_name(0))
        # fp32 is compared with fp32: by default torch may round matrix factors to 19 bits.
        torch.backends.cuda.matmul.allow_tf32 = False

    def copy_bandwidth(self, nbytes: int) -> float:
        """Bytes per second, read and written, of one tensor copied to another."""
        torch = self._torch
        x = torch.zeros(nbytes // 4, dtype=torch.float32, device="cuda")
        y = torch.empty_like(x)
        times = stopwatch.measure(lambda n: Timed(torch, _calls([lambda: y.copy_(x)], n)), stopwatch.HARDWARE)
        return 2 * nbytes / times.median

    def measure(self, kernel: Kernel, host: Sequence[HostArray], scalars: Scalars, sets: int = 1) -> PeerTimes | None:
        """Times of a kernel's call by the peer, rotating among `sets` copies of its data; None without a peer."""
        maker = PEERS.get(kernel.name)
        if maker is None:
            return None
        torch = self._torch
        names = [o.name for o in kernel.inputs]
        works: list[Work] = []
        for _ in range(sets):
            tensors = {name: self._tensor(values) for name, values in zip(names, host, strict=True)}
            works.append(maker(torch, tensors, scalars))
        result = works[0]()
        torch.cuda.synchronize()
        once = Timed(torch, _calls(works, sets))
        once.run()
        short = once.run() / sets < _SHORT and kernel.name not in _EAGER
        times = self._in_graph(works) if short else None
        how = "eager" if times is None else "CUDA graph"
        if times is None:
            times = stopwatch.measure(lambda n: Timed(torch, _calls(works, n)), stopwatch.HARDWARE, sets)
        return PeerTimes(times, how, result.reshape(-1).cpu().numpy())

    def _in_graph(self, works: Sequence[Work]) -> stopwatch.Times | None:
        """The times of the calls replayed from a graph; None where torch cannot capture them."""
        try:
            return stopwatch.measure(lambda n: CudaGraph(self._torch, _calls(works, n)), stopwatch.HARDWARE, len(works))
        except RuntimeError:
            self._torch.cuda.synchronize()
            return None

    def _tensor(self, values: HostArray) -> Any:
        # torch has no arithmetic on unsigned words; indices below 2^31 are the same bits.
        signed = values.view(f"i{values.dtype.itemsize}") if values.dtype.kind == "u" else values
        return self._torch.from_numpy(np.ascontiguousarray(signed)).to("cuda")

    def close(self) -> None:
        """Gives cached memory back, which our device may want."""
        self._torch.cuda.synchronize()
        self._torch.cuda.empty_cache()


def _calls(works: Sequence[Work], calls: int) -> Work:
    """Work of `calls` calls one after the other, rotating among `works`."""
    turns = [works[i % len(works)] for i in range(calls)]

    def all_of_them() -> None:
        for call in turns:
            call()

    return all_of_them


def load(name: str) -> TorchPeer:
    """The peer of that name, on a GPU: on a processor its numbers would compare nothing."""
    return TorchPeer(load_library(name, NAMES))
