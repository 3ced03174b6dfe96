"""product_fast: the template of products with tails whose sums are in any order, with fused multiply-adds.

It is no kernel of the catalogue: `dashi.kernels.fuse_product(..., portable=False)` fills its function `finish`. Tails
are computed as they are written, as everywhere: portable functions are exact only so.
"""

from dataclasses import replace

from dashi.kernels.linear import _products as products
from dashi.kernels.linear._product_template import template

KERNEL = replace(
    template(
        "matrix product a b in any order of summation, and four operands that are not used",
        products.shaders(products.OPERANDS, products.SCALARS, contracted=False),
        tuple(products.TUNINGS),
        windows=False,
    ),
    portable=False,
    bound=products.FAST_BOUND,
)
