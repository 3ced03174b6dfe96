"""product: the template of products with tails, compiled with a tail that does nothing.

It is no kernel of the catalogue: `dashi.kernels.fuse_product` fills its function `finish`.
"""

from dashi.kernels.linear import _products as products
from dashi.kernels.linear._product_template import template

KERNEL = template(
    "matrix product a b, and four operands that are not used",
    products.shaders(products.OPERANDS, products.SCALARS),
    tuple(products.TUNINGS),
    windows=False,
)
