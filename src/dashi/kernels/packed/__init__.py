"""Products with weights in the block formats of GGUF files, which are never widened in memory.

`repack` makes the tiles that the kernels `matmul_q4_k` and so on read, `unpack` the bytes again, `dequantize` the
numbers that they stand for."""

from dashi.kernels.packed._block_format import BlockFormat
from dashi.kernels.packed._formats import FORMATS, dequantize
from dashi.kernels.packed._tiles import repack, unpack

__all__ = ["FORMATS", "BlockFormat", "dequantize", "repack", "unpack"]
