"""Weights in the block formats of GGUF files: bytes that a graph reads as the numbers that they stand for.

A graph says `dequantize`; passes make of it what a kernel reads: `tiles` where rows of weights are multiplied or
gathered (they are never widened in memory), `widened` elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dashi import kernels
from dashi.errors import GraphError
from dashi.graph._arguments import checked
from dashi.graph._lines import evaluate_lines, infer_lines
from dashi.graph.ir import Node, TensorType, tensor_type
from dashi.graph.op import Launch, Op
from dashi.graph.ops._fused import lines_of, read_types, read_values, views_of
from dashi.graph.ops.products import MATMUL
from dashi.kernels.abi import Kernel
from dashi.kernels.packed import FORMATS
from dashi.kernels.packed._block_format import BlockFormat
from dashi.kernels.packed._formats import block_format
from dashi.kernels.packed._formats import dequantize as widen
from dashi.kernels.packed._tiles import repack, tile_shape, unpack
from dashi.kernels.portable import canon
from dashi.runtime._shapes import sizes_of
from dashi.types import HostArray

if TYPE_CHECKING:
    from dashi.graph.builder import Builder, Tensor


@checked
def dequantize(data: Tensor, format: str) -> Tensor:
    """The numbers (..., k) that bytes (uint8, (..., bytes of a row)) in a block format of GGUF stand for."""
    return data.builder.add(DEQUANTIZE, data, format=block_format(format).name)


def packed_param(builder: Builder, name: str, format: str, shape: Sequence[int], data: Any) -> Tensor:
    """The numbers of a param in a block format: see `Builder.packed_param`."""
    form = block_format(format)
    shape = sizes_of(shape)
    if not shape:
        raise GraphError(f"the packed param {name!r} has no rows.", "give the shape of its numbers: (..., rows, k).")
    stored = (*shape[:-1], form.row_bytes(shape[-1]))
    values = np.frombuffer(data, np.uint8) if isinstance(data, (bytes, bytearray)) else np.asarray(data)
    if values.dtype != np.uint8 or values.size != math.prod(stored):
        raise GraphError(
            f"the packed param {name!r} has {values.size} elements of {values.dtype}.",
            f"pass the {math.prod(stored)} bytes of {form.name} that {tuple(shape)} takes.",
        )
    return dequantize(builder.param(name, values.reshape(stored)), form.name)


def format_of(node: Node) -> BlockFormat:
    """The block format that a node names."""
    return block_format(str(node.get("format")))


def has_packed_kernels(form: BlockFormat) -> bool:
    """Whether kernels read tiles of a format."""
    return form.name in FORMATS


def _infer_dequantize(node: Node, types: Sequence[TensorType]) -> TensorType:
    form, (data,) = format_of(node), types
    if data.dtype.name != "u8" or not data.shape or data.shape[-1] % form.size:
        raise GraphError(f"{data} are no bytes in {form.name}.", f"pass uint8, rows of a multiple of {form.size}.")
    return tensor_type((*data.shape[:-1], data.shape[-1] // form.size * form.length), "f32")


def _evaluate_dequantize(node: Node, data: HostArray) -> HostArray:
    """The fp32 numbers of `gguf.quants`, canonical."""
    rows = data.reshape(math.prod(data.shape[:-1]), data.shape[-1])
    return canon(widen(format_of(node).name, rows)).reshape(node.shape)


def _infer_tiles(node: Node, types: Sequence[TensorType]) -> TensorType:
    form, (data,) = format_of(node), types
    if data.dtype.name != "u8" or len(data.shape) < 2 or data.shape[-1] % form.size or not has_packed_kernels(form):
        raise GraphError(f"there are no tiles of {data} in {form.name}.", "pass rows of bytes in another format.")
    rows = math.prod(data.shape[:-1])
    return tensor_type(tile_shape(form, data.shape[-1] // form.size * form.length, rows), "u32")


def _evaluate_tiles(node: Node, data: HostArray) -> HostArray:
    return repack(format_of(node).name, data.reshape(math.prod(data.shape[:-1]), data.shape[-1]))


def _require_tiles(form: BlockFormat, tiles: TensorType, k: int) -> int:
    """The number of rows that tiles hold, if they are of rows of k weights."""
    if tiles.dtype.name != "u32" or len(tiles.shape) != 3 or tile_shape(form, k, tiles.shape[2]) != tiles.shape:
        raise GraphError(f"{tiles} are no tiles of rows of {k} weights in {form.name}.", "pass those of the node's k.")
    return tiles.shape[2]


def _infer_product(node: Node, types: Sequence[TensorType]) -> TensorType:
    if len(views_of(node)) > 1 and views_of(node)[1] is not None:
        raise GraphError("tiles are not read through a view.", "write null for it.")
    read = read_types(node, types)
    x, tiles = read["in0"], read["in1"]
    if x.dtype.name != "f32" or len(x.shape) < 2:
        raise GraphError(f"{x} is no matrix of float32.", "pass (..., m, k).")
    n = _require_tiles(format_of(node), tiles, x.shape[-1])
    return infer_lines(lines_of(node, "tail"), {**read, "value": tensor_type((*x.shape[:-1], n), "f32")})


def _evaluate_product(node: Node, *values: HostArray) -> HostArray:
    """tree64 over k of mul(x[..., k], w[n, k]), w the numbers of the tiles; then the tail."""
    read = read_values(node, values)
    x, name = read["in0"], format_of(node).name
    numbers = canon(widen(name, unpack(name, read["in1"], x.shape[-1])))
    return evaluate_lines(lines_of(node, "tail"), {**read, "value": MATMUL.evaluate(node, x, numbers.T)})


def _launch_product(node: Node, types: Sequence[TensorType]) -> Launch | None:
    x, tiles = types[0].shape, types[1].shape
    rows, name = math.prod(x[:-1]), format_of(node).name.lower()
    if lines_of(node, "tail") or any(view is not None for view in views_of(node)):
        return None
    return Launch(kernels.get(f"matmul_{name}"), ((rows, x[-1]), tiles), (rows, tiles[2]))


def _infer_grouped(node: Node, types: Sequence[TensorType]) -> TensorType:
    x, tiles, group = types
    n = node.integer("n")
    if x.dtype.name != "f32" or len(x.shape) != 2 or group != tensor_type(x.shape[:1], "u32"):
        raise GraphError(f"{x} in groups {group} are no rows.", "pass (m, k) of float32, and groups (m,) of uint32.")
    rows = _require_tiles(format_of(node), tiles, x.shape[1])
    if n < 1 or not rows or rows % n:
        raise GraphError(f"{rows} packed rows are no matrices of {n}.", "pass whole matrices, one at least.")
    return tensor_type((x.shape[0], n), "f32")


def _evaluate_grouped(node: Node, x: HostArray, tiles: HostArray, group: HostArray) -> HostArray:
    return np.asarray(_grouped_kernel(node).reference(x, tiles, group, n=node.integer("n")))


def _launch_grouped(node: Node, types: Sequence[TensorType]) -> Launch:
    return Launch(_grouped_kernel(node), tuple(kind.shape for kind in types), node.shape, {"n": node.integer("n")})


def _grouped_kernel(node: Node) -> Kernel:
    return kernels.get(f"grouped_{format_of(node).name.lower()}")


def _infer_gather(node: Node, types: Sequence[TensorType]) -> TensorType:
    tiles, index = types
    _require_tiles(format_of(node), tiles, node.integer("k"))
    if index.dtype.name != "u32":
        raise GraphError(f"rows cannot be gathered by {index}.", "pass an index of uint32.")
    return tensor_type((*index.shape, node.integer("k")), "f32")


def _evaluate_gather(node: Node, tiles: HostArray, index: HostArray) -> HostArray:
    kernel = kernels.get(f"gather_{format_of(node).name.lower()}")
    return np.asarray(kernel.reference(tiles, index.reshape(-1), k=node.integer("k"))).reshape(node.shape)


def _launch_gather(node: Node, types: Sequence[TensorType]) -> Launch | None:
    tiles, count, k = types[0].shape, types[1].size, node.integer("k")
    if tiles[2] == 0:
        return None
    kernel = kernels.get(f"gather_{format_of(node).name.lower()}")
    return Launch(kernel, (tiles, (count,)), (count, k), {"k": k})


DEQUANTIZE: Final = Op("dequantize", _infer_dequantize, _evaluate_dequantize, arity=(1, 1))
TILES: Final = Op("tiles", _infer_tiles, _evaluate_tiles, arity=(1, 1))
"""A packed param in the order in which kernels read it: stored."""
WIDENED: Final = Op("widened", _infer_dequantize, _evaluate_dequantize, arity=(1, 1))
"""The numbers of a packed param, computed when it is set: stored."""
PACKED_PRODUCT: Final = Op("packed_product", _infer_product, _evaluate_product, arity=(2, None), launch=_launch_product)
PACKED_GATHER: Final = Op("packed_gather", _infer_gather, _evaluate_gather, arity=(2, 2), launch=_launch_gather)
PACKED_GROUPED: Final = Op("packed_grouped", _infer_grouped, _evaluate_grouped, arity=(3, 3), launch=_launch_grouped)
"""Each row times the matrix of its group, of n rows each, which lie one after another in one array of tiles."""
OPS: Final = (DEQUANTIZE, TILES, WIDENED, PACKED_PRODUCT, PACKED_GATHER, PACKED_GROUPED)
