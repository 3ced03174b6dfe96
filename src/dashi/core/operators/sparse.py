"""Sparse operators: z' = psi(z A + b) with an A stored by columns, entry by entry or in square blocks.

A state is a row, so output j is the sum over i of z[i] A[i, j]: it gathers what column j of A holds. Both classes
therefore keep the columns of A one after another (what SciPy calls CSC; it is the CSR of A transposed). Products are
added in the order in which the entries are stored, tree64, so an A with every entry stored gives the bits of the dense
operator.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from dashi.core.operators._lists import index_array, longest_of, number_array, pointer_array, require_rising
from dashi.core.operators._nonlinearity import Nonlinearity
from dashi.core.operators.operator import (
    Constants,
    Operator,
    Parameter,
    Strategy,
    float_array,
    require_finite,
    square_array,
)
from dashi.errors import FeatureError, ShapeError
from dashi.kernels import _lists as lists
from dashi.kernels._interleaved_lists import interleave
from dashi.kernels.abi import Limits
from dashi.runtime.array import Array
from dashi.runtime.device import Device, Step
from dashi.types import HostArray, Shape


def chip_hindrance(kernel: str, width: int, entries: tuple[int, ...], element: int, limits: Limits) -> str:
    """Why a kernel over lists cannot roll a state out in one workgroup; empty if it can."""
    lanes = lists.ROLLOUT_TUNINGS[lists.prefer_rollout(limits, "f32" if element == 4 else "f64")]["lanes"]
    return lists.too_large(kernel, lists.on_chip(width, entries, lanes, limits), element, limits)


def require_strategy(operator: Operator, strategy: Strategy, limits: Limits) -> None:
    """Refuses a strategy that is not supported, and the one step by step, which has no kernel of many steps."""
    problem = operator.unsupported_reason(strategy, limits, 1) or (
        "" if strategy == "workgroup" else "it takes a dispatch for each step"
    )
    if problem:
        raise FeatureError(
            f"{operator.kind} has no kernel for the strategy {strategy!r} here: {problem}.", "use stepwise."
        )


def list_microseconds(strategy: Strategy, limits: Limits, states: int, products: int, moved: int) -> float:
    """About how long a step over lists takes: one workgroup reads some 60 kB in a microsecond, the whole device 2 MB.
    A processor makes a product in 7 ns on its cores, and in 16 ns in one workgroup; a dispatch costs it 25 us."""
    if limits.software:
        return 3 + states * products / 60 if strategy == "workgroup" else 25 + states * products / 150
    if strategy == "workgroup":
        return (0.5 + moved / 60_000) * (1 + states // 133)
    return 3.0 + states * moved / 2e6


class _ByColumns(Operator):
    """What both kinds share: a bias and a nonlinearity after the product, a kernel of one step and one of many."""

    _kernels: ClassVar[tuple[str, str]]
    """Names of the kernels of one step and of many; below, the operands that they take after the state."""
    _operands: ClassVar[tuple[str, ...]]
    _operands_of_many: ClassVar[tuple[str, ...]]
    _bias: HostArray
    _psi: Nonlinearity
    _longest: int

    @property
    def shape(self) -> Shape:
        return (self._bias.size,)

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        return self._psi.parameters("psi")

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._bias.dtype

    @property
    @abstractmethod
    def _depth(self) -> int:
        """The most products that are added in one output."""

    @property
    def _scalars(self) -> dict[str, Any]:
        return {"longest": self._longest, **self._psi.scalars}

    def step(self, device: Device, constants: Constants, source: Array, target: Array) -> Sequence[Step]:
        operands = (source, *(constants[name] for name in self._operands))
        return [device.bind(self._kernels[0], *operands, out=target, **self._scalars)]

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
        operands = (source, *(constants[name] for name in self._operands_of_many))
        return device.bind(self._kernels[1], *operands, out=target, steps=count, **self._scalars)

    def unsupported_reason(self, strategy: Strategy, limits: Limits, states: int) -> str:
        if strategy == "workgroup":
            return chip_hindrance(self._kernels[1], self.shape[0], (self._depth,), self.dtype.itemsize, limits)
        return "" if strategy == "stepwise" else "sparse operators have no kernel that passes tagged values"


class Csr(_ByColumns):
    """z' = psi(z A + b), A given by its columns: `indices[indptr[j]:indptr[j + 1]]` are the rows of the entries of
    column j, in rising order, and `data` their values. `from_dense` and `from_entries` make it from what is at hand.
    """

    kind = "csr"
    _operands = ("data", "indices", "indptr", "b")
    _operands_of_many = ("values", "sources", "heads", "b")
    _kernels = ("csr_step", "csr_rollout")

    def __init__(
        self,
        data: Any,
        indices: Any,
        indptr: Any,
        b: Any = None,
        psi: str = "none",
        *,
        alpha: float = 1.0,
        low: float = -1.0,
        high: float = 1.0,
    ) -> None:
        values = float_array("data", data)
        self._data = number_array("data", values, (values.size,))
        self._indptr = pointer_array("indptr", indptr, values.size)
        width = len(self._indptr) - 1
        self._indices = index_array("indices", indices, width)
        if self._indices.shape != values.shape:
            raise ShapeError(
                f"there are {self._indices.size} indices for {values.size} values.", "pass one index for each value."
            )
        require_rising("indices", self._indices, self._indptr, "column")
        self._bias = number_array("b", np.zeros(width, values.dtype) if b is None else b, (width,), values.dtype)
        self._psi = Nonlinearity(psi, alpha, low, high)
        self._longest = longest_of(self._indptr)

    @classmethod
    def from_dense(cls, A: Any, b: Any = None, psi: str = "none", **numbers: float) -> Csr:  # noqa: N803 - as in z A
        """The entries of a square matrix that are not 0."""
        matrix = square_array("A", A)
        columns, rows = np.nonzero(matrix.T)
        return cls.from_entries(rows, columns, matrix[rows, columns], len(matrix), b, psi, **numbers)

    @classmethod
    def from_entries(
        cls, rows: Any, columns: Any, values: Any, size: int, b: Any = None, psi: str = "none", **numbers: float
    ) -> Csr:
        """A of shape (size, size) from its entries A[rows[e], columns[e]] = values[e], in any order."""
        r, c = index_array("rows", rows, size), index_array("columns", columns, size)
        data = float_array("values", values)
        if not r.shape == c.shape == data.shape:
            raise ShapeError(
                f"there are {r.size} rows, {c.size} columns and {data.size} values.", "pass one of each for each entry."
            )
        order = np.lexsort((r, c))
        indptr = np.searchsorted(c[order], np.arange(size + 1))
        return cls(data[order], r[order], indptr, b, psi, **numbers)

    @property
    def arrays(self) -> Mapping[str, HostArray]:
        return {"data": self._data, "indices": self._indices, "indptr": self._indptr, "b": self._bias}

    @classmethod
    def restore(cls, arrays: Mapping[str, HostArray], parameters: Mapping[str, Parameter]) -> Operator:
        psi = Nonlinearity.restore("psi", parameters)
        lists_ = (arrays["data"], arrays["indices"], arrays["indptr"])
        return Csr(*lists_, arrays.get("b"), psi.name, **psi.numbers)

    @property
    def _depth(self) -> int:
        return self._longest

    def load(self, device: Device) -> Constants:
        constants = dict(super().load(device))
        if not self.unsupported_reason("workgroup", device.limits, 1):
            # One workgroup reads the columns side by side.
            heads, (values, sources) = interleave(self._indptr, self._data, self._indices)
            more = {"heads": heads, "values": values, "sources": sources}
            constants |= {name: device.array(array) for name, array in more.items()}
        return constants

    def estimated_us(self, strategy: Strategy, limits: Limits, states: int) -> float:
        entries = self._data.size
        return list_microseconds(strategy, limits, states, entries, entries * (self.dtype.itemsize + 4))


class BlockSparse(_ByColumns):
    """z' = psi(z A + b), A given by square blocks: block t of column c holds A[rows[t] s + i, c s + j] at
    blocks[t, i, j], and those of block column c are t = indptr[c] up to indptr[c + 1], in rising order of rows."""

    kind = "block_sparse"
    _operands = _operands_of_many = ("blocks", "rows", "indptr", "b")
    _kernels = ("block_step", "block_rollout")

    def __init__(
        self,
        blocks: Any,
        rows: Any,
        indptr: Any,
        b: Any = None,
        psi: str = "none",
        *,
        alpha: float = 1.0,
        low: float = -1.0,
        high: float = 1.0,
    ) -> None:
        stored = float_array("blocks", blocks)
        if stored.ndim != 3 or stored.shape[1] != stored.shape[2] or stored.shape[1] == 0:
            raise ShapeError(f"blocks has shape {stored.shape}.", "pass square blocks: shape (count, side, side).")
        require_finite("blocks", stored)
        self._blocks = stored
        self._indptr = pointer_array("indptr", indptr, len(stored))
        columns = len(self._indptr) - 1
        self._rows = index_array("rows", rows, columns)
        if len(self._rows) != len(stored):
            raise ShapeError(f"there are {len(self._rows)} rows for {len(stored)} blocks.", "pass one for each block.")
        require_rising("rows", self._rows, self._indptr, "block column")
        width = columns * stored.shape[1]
        self._bias = number_array("b", np.zeros(width, stored.dtype) if b is None else b, (width,), stored.dtype)
        self._psi = Nonlinearity(psi, alpha, low, high)
        self._longest = longest_of(self._indptr)

    @classmethod
    def from_dense(
        cls,
        A: Any,  # noqa: N803 - as in z A
        side: int,
        b: Any = None,
        psi: str = "none",
        **numbers: float,
    ) -> BlockSparse:
        """The blocks of a square matrix that are not all 0."""
        matrix = float_array("A", A)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or side < 1 or len(matrix) % side:
            raise ShapeError(
                f"A of shape {matrix.shape} is not square, or not made of blocks of {side}.",
                "pass a square A whose size is a multiple of `side`.",
            )
        count = len(matrix) // side
        cut = matrix.reshape(count, side, count, side).transpose(2, 0, 1, 3)
        columns, rows = np.nonzero(cut.any(axis=(2, 3)))
        indptr = np.searchsorted(columns, np.arange(count + 1))
        return cls(cut[columns, rows], rows, indptr, b, psi, **numbers)

    @property
    def arrays(self) -> Mapping[str, HostArray]:
        return {"blocks": self._blocks, "rows": self._rows, "indptr": self._indptr, "b": self._bias}

    @classmethod
    def restore(cls, arrays: Mapping[str, HostArray], parameters: Mapping[str, Parameter]) -> Operator:
        psi = Nonlinearity.restore("psi", parameters)
        lists_ = (arrays["blocks"], arrays["rows"], arrays["indptr"])
        return BlockSparse(*lists_, arrays.get("b"), psi.name, **psi.numbers)

    @property
    def _depth(self) -> int:
        return self._longest * self._blocks.shape[1]

    def estimated_us(self, strategy: Strategy, limits: Limits, states: int) -> float:
        return list_microseconds(strategy, limits, states, self._blocks.size, self._blocks.nbytes)
