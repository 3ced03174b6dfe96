"""Quadratic operators: z' = z + dt (z L + Q(z, z) + f), with a sparse list of triads Q."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from dashi.core.operators._lists import index_array, longest_of, number_array
from dashi.core.operators.operator import Constants, Operator, Parameter, Strategy, float_array
from dashi.core.operators.sparse import Csr, chip_hindrance, list_microseconds, require_strategy
from dashi.errors import InputError, ShapeError
from dashi.kernels._interleaved_lists import interleave
from dashi.kernels._segments import segments
from dashi.kernels.abi import Limits
from dashi.runtime.array import Array
from dashi.runtime.device import Device, Step
from dashi.types import HostArray, Shape

_LISTS: Final = ("L_data", "L_indices", "L_indptr")
_LINEAR: Final = ("values", "sources", "offsets")
_TRIADS: Final = ("weights", "pairs", "ends")


class Quadratic(Operator):
    """z' = z + dt (z L + Q(z, z) + f): a step of dz/dt, for instance of a Galerkin truncation.

    Q is a list of triads: triad e adds c[e] z[i[e]] z[j[e]] to output k[e]; those of one output are added in the order
    of the list, tree64. L is a square matrix (row vector times matrix, with the bits of gemv), a `Csr` without bias and
    nonlinearity, or None; f is a vector or None. Without L the number of components is `size`.
    """

    kind = "quadratic"

    def __init__(
        self,
        i: Any,
        j: Any,
        k: Any,
        c: Any,
        *,
        dt: float,
        L: Any = None,  # noqa: N803 - as in the equation
        f: Any = None,
        size: int | None = None,
    ) -> None:
        weights = float_array("c", c)
        self._c = number_array("c", weights, (weights.size,))
        self._dt = float(dt)
        if not np.isfinite(self._dt):
            raise InputError(f"dt is {dt}.", "pass a finite length of a step.")
        self._linear = _linear_arrays(L, self._c.dtype)
        self._size = _size(L, self._linear, size)
        self._i, self._j, self._k = (index_array(n, v, self._size) for n, v in (("i", i), ("j", j), ("k", k)))
        if not self._i.shape == self._j.shape == self._k.shape == self._c.shape:
            raise ShapeError(
                f"there are {self._i.size} i, {self._j.size} j, {self._k.size} k and {self._c.size} c.",
                "pass one of each for each triad.",
            )
        forcing = np.zeros(self._size, self._c.dtype) if f is None else f
        self._f = number_array("f", forcing, (self._size,), self._c.dtype)
        # The triads of an output lie together on a device, in the order of the list.
        self._order, self._ends, self._most = segments(self._k, self._size)
        self._longest = _longest_column(self._linear)

    @property
    def shape(self) -> Shape:
        return (self._size,)

    @property
    def arrays(self) -> Mapping[str, HostArray]:
        return {"i": self._i, "j": self._j, "k": self._k, "c": self._c, "f": self._f, **self._linear}

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        return {"dt": self._dt, "size": self._size}

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._c.dtype

    @classmethod
    def restore(cls, arrays: Mapping[str, HostArray], parameters: Mapping[str, Parameter]) -> Operator:
        linear: Any = arrays.get("L")
        if linear is None and _LISTS[0] in arrays:
            data, indices, indptr = (arrays[name] for name in _LISTS)
            linear = Csr(data, indices, indptr)
        triads = (arrays[name] for name in "ijkc")
        size = int(parameters["size"]) if "size" in parameters else None
        return Quadratic(*triads, dt=float(parameters["dt"]), L=linear, f=arrays.get("f"), size=size)

    def load(self, device: Device) -> Constants:
        values, sources, offsets = _columns(self._linear, self._size, self.dtype)
        weights, pairs = self._c[self._order], np.stack([self._i[self._order], self._j[self._order]], axis=1)
        arrays: dict[str, HostArray] = dict(zip(_LINEAR, (values, sources, offsets), strict=True))
        arrays |= dict(zip(_TRIADS, (weights, pairs, self._ends), strict=True))
        if not self.unsupported_reason("workgroup", device.limits, 1):
            # One workgroup reads the lists side by side.
            heads, moved = interleave(offsets, values, sources)
            arrays |= dict(zip(map(_side_by_side, _LINEAR), (*moved, heads), strict=True))
            heads, moved = interleave(self._ends, weights, pairs)
            arrays |= dict(zip(map(_side_by_side, _TRIADS), (*moved, heads), strict=True))
        return {name: device.array(array) for name, array in {**arrays, "force": self._f}.items()}

    @property
    def _scalars(self) -> dict[str, Any]:
        return {"dt": self._dt, "longest_linear": self._longest, "longest_triads": self._most}

    def step(self, device: Device, constants: Constants, source: Array, target: Array) -> Sequence[Step]:
        operands = (source, *(constants[name] for name in (*_LINEAR, *_TRIADS, "force")))
        return [device.bind("quadratic_step", *operands, out=target, **self._scalars)]

    def step_many(
        self,
        device: Device,
        constants: Constants,
        source: Array,
        target: Array,
        flag: Array,
        count: int,
        strategy: Strategy,
    ) -> Step:
        require_strategy(self, strategy, device.limits)
        operands = (source, *(constants[_side_by_side(name)] for name in (*_LINEAR, *_TRIADS)), constants["force"])
        return device.bind("quadratic_rollout", *operands, out=target, steps=count, **self._scalars)

    def unsupported_reason(self, strategy: Strategy, limits: Limits, states: int) -> str:
        if strategy == "workgroup":
            longest = (self._longest, self._most)
            return chip_hindrance("quadratic_rollout", self._size, longest, self.dtype.itemsize, limits)
        return "" if strategy == "stepwise" else "quadratic operators have no kernel that passes tagged values"

    def estimated_us(self, strategy: Strategy, limits: Limits, states: int) -> float:
        size = self.dtype.itemsize
        entries = self._linear["L"].size if "L" in self._linear else self._linear.get(_LISTS[0], self._c[:0]).size
        moved = entries * (size + 4) + self._c.size * (size + 8)
        return list_microseconds(strategy, limits, states, entries + 2 * self._c.size, moved)


def _side_by_side(name: str) -> str:
    """The name of an array whose lists lie side by side."""
    return f"{name}_slab"


def _linear_arrays(linear: Any, kind: np.dtype[Any]) -> dict[str, HostArray]:
    """The arrays that keep L: a matrix, the lists of its columns, or none."""
    if linear is None:
        return {}
    if isinstance(linear, Csr):
        if linear.parameters["psi"] != "none" or linear.arrays["b"].any():
            raise InputError("L has a bias or a nonlinearity.", "pass Csr(data, indices, indptr) alone; use f for b.")
        data = number_array("L", linear.arrays["data"], linear.arrays["data"].shape, kind)
        return {"L_data": data, "L_indices": linear.arrays["indices"], "L_indptr": linear.arrays["indptr"]}
    matrix = float_array("L", linear)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ShapeError(f"L has shape {matrix.shape}; it must be square.", "pass L of shape (D, D), or a Csr.")
    return {"L": number_array("L", matrix, matrix.shape, kind)}


def _size(given: Any, linear: Mapping[str, HostArray], size: int | None) -> int:
    """The number of components, on which L and `size` must agree."""
    rows = None if given is None else given.shape[0] if isinstance(given, Csr) else len(linear["L"])
    count = size if rows is None else rows
    if count is None or count < 1 or (size is not None and size != count):
        raise ShapeError(
            f"size is {size}, and L has {'no' if rows is None else rows} rows.",
            "pass size=, the number of components, or a matrix L of as many rows.",
        )
    return int(count)


def _columns(linear: Mapping[str, HostArray], size: int, kind: np.dtype[Any]) -> tuple[HostArray, HostArray, HostArray]:
    """L as lists of its columns; a matrix with every entry, zeros too, so that its bits are gemv's."""
    if "L" in linear:
        rows = np.tile(np.arange(size, dtype=np.uint32), size)
        return linear["L"].T.reshape(-1), rows, (np.arange(size + 1) * size).astype(np.uint32)
    if linear:
        return linear[_LISTS[0]], linear[_LISTS[1]], linear[_LISTS[2]]
    return np.zeros(0, kind), np.zeros(0, np.uint32), np.zeros(size + 1, np.uint32)


def _longest_column(linear: Mapping[str, HostArray]) -> int:
    if "L" in linear:
        return len(linear["L"])
    return longest_of(linear[_LISTS[2]]) if linear else 0
