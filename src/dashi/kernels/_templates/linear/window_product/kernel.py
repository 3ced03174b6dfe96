"""window_product: the template of products with windows and tails, compiled with a tail that does nothing.

It is no kernel of the catalogue: `dashi.kernels._window_fusion` fills its function `finish`. As it stands the windows
are the columns of a matrix.
"""

from dashi.kernels.linear import _products as products
from dashi.kernels.linear._product_template import template

KERNEL = template(
    "matrix product a b by way of windows, and four operands that are not used",
    products.window_shaders(products.OPERANDS, products.SCALARS),
    products.WINDOW_TUNINGS,
    windows=True,
)
