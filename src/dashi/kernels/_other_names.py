"""What other libraries call things: from a name that no kernel has to the kernels that do it, if there are any.

Names of kernels stand in backticks in the advice; a test asks the registry for each.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Final

LIST: Final = "`dashi kernels list` names them all."
_NONE: Final = (
    "no kernel does it: compute it on the host with NumPy, or write one "
    "(`dashi kernels new {name} --folder my_kernels`)"
)

_ADVICE: Final = {
    "dot mm inner": "use `matmul` (matrices, batched too) or `gemv` (row vector times matrix)",
    "bmm batched_matmul": "use `matmul` (matrices, batched and broadcast)",
    "sdpa scaled_dot_product_attention flash_attention multi_head_attention": "use `attention`",
    "mv matvec vecmat linear": "use `gemv` (row vector times matrix) or `gemm_tiled` (rows times matrix)",
    "spmm sparse_matmul csr_matmul": "use `spmv_csr` (sparse matrix times vector)",
    "solve inv inverse lstsq": "use `cholesky` and `triangular_solve` (symmetric positive definite systems)",
    "plus": "use `add`",
    "subtract minus": "use `sub`",
    "multiply times hadamard": "use `mul` (element by element), `scale` (by a number) or `complex_mul`",
    "divide true_divide truediv": "use `div` (element by element) or `scale` (by a number)",
    "floor_divide mod remainder fmod": "use `div`; whole quotients and remainders: " + _NONE,
    "negative negate": "use `neg`",
    "absolute fabs": "use `abs`, or `complex_abs2` of complex pairs",
    "abs2": "use `square`, or `complex_abs2` of complex pairs",
    "recip": "use `reciprocal`",
    "log2 log10": "use `log`, then `scale` by 1 / ln of the base",
    "exp2 exp10": "use `scale` by ln of the base, then `exp`",
    "tan": "use `sin`, `cos` and `div`",
    "clip clamp_min clamp_max": "use `clamp` (infinities leave a side open)",
    "fmax": "use `maximum` (element by element) or `reduce_max`",
    "fmin": "use `minimum` (element by element) or `reduce_min`",
    "select choose ifelse": "use `where`",
    "logistic expit": "use `sigmoid`",
    "fma mad addcmul muladd": "use `fma3` (rounded twice)",
    "saxpy daxpy": "use `axpy`",
    "scal sscal dscal": "use `scale`",
    "full full_like zeros zeros_like ones ones_like memset set": "use `fill`",
    "clone memcpy identity assign": "use `copy`",
    "total reduce_add": "use `reduce_sum`",
    "mean average": "use `reduce_sum`, and divide by the number of elements",
    "var std variance": "use `reduce_statistics` ([min, max, sum, sum of squares])",
    "amax": "use `reduce_max`",
    "amin": "use `reduce_min`",
    "nrm2 l2norm norm2 vector_norm": "use `reduce_l2`",
    "cumulative_sum inclusive_scan": "use `prefix_scan`",
    "take index_select": "use `gather`",
    "put index_put": "use `scatter`",
    "index_add": "use `scatter_add_sorted`",
    "segment_sum": "use `scatter_add_sorted`, or `scatter_add_segmented` where the host knows the segments",
    "repeat": "use `tile`",
    "argpartition nlargest nsmallest": "use `top_k`",
    "sort_values msort radix_sort": "use `sort`, or `sort_pairs` where values go with the keys",
    "lexsort": "use `argsort` and `gather`, once for every key, the last first: it is stable",
    "permute swapaxes": "use `transpose` (of two axes)",
    "conj conjugate": "use `complex_conj`",
    "ifft": "use `fft` with inverse=1, or dashi.fft.ifft",
    "ifft2": "use `fft2` with inverse=1, or dashi.fft.ifft2",
    "convolve conv convolution conv2d": "use `rfft2`, `complex_mul` and `irfft2` (periodic convolution)",
    "half float16 astype cast": "use `to_f16`, `from_f16`, `to_bf16` or `from_bf16`",
    "hash blake3 sha256": "use `hash_state`",
    "concatenate concat cat stack hstack vstack": (
        "no kernel does it: concatenate on the host with NumPy, or write into parts of one array (device.part)"
    ),
    "reshape view ravel flatten": "no kernel is needed: array.reshape(shape) is the same memory in that shape",
    "random rand randn normal uniform": "no kernel does it: draw on the host with numpy.random",
    "prod logsumexp": "make it over any axes, with dashi.kernels.reduce_rows(\"{name}\", x) of an expression x",
    "log_softmax": "make it over any axes, with dashi.kernels.row_map(\"{name}\", x) of an expression x",
    (
        "gelu silu swish erfc unique cumprod nansum "
        "expm1 log1p sinh cosh asin acos arcsin arccos hypot batch_norm dropout "
        "cross outer einsum svd qr eig det"
    ): _NONE,
}  # fmt: skip

ADVICE: Final = {name: advice.format(name=name) for names, advice in _ADVICE.items() for name in names.split()}
"""What to do instead, by the name that was asked for."""


def fix_for(name: str, known: Iterable[str]) -> str:
    """The fix for a name that no kernel has; `known` are the names and aliases that there are."""
    asked = name.lower()
    if asked in ADVICE:
        return f"{ADVICE[asked]}; {LIST}"
    near = difflib.get_close_matches(asked, sorted(known), n=3)
    return f"did you mean {' or '.join(near)}? {LIST}" if near else LIST
