"""Constants of the portable maths, the same numbers as in the GLSL includes.

Polynomials are interpolations at Chebyshev nodes, computed with 60 digits and rounded to the precision; coefficients
go from the constant up. Truncation and rounded coefficients change a result by less than 0.1 ulp.

exp: (e^r - 1 - r) / r^2 for |r| <= ln(2)/2; log: (2 atanh(s)/s - 2) / s^2 in s^2 <= 0.04;
tanh: (tanh(x)/x - 1) / x^2 in x^2 <= 1/4; sin: (sin(r)/r - 1) / r^2 and
cos: (cos(r) - 1 + r^2/2) / r^4, both in r^2 <= (pi/4)^2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dashi.kernels.portable._bits import Format

Coefficients = tuple[float, ...]


@dataclass(frozen=True)
class Table:
    """Constants of one precision."""

    exp: Coefficients
    log: Coefficients
    tanh: Coefficients
    sin: Coefficients
    cos: Coefficients
    reciprocal: Coefficients
    """Minimax quadratic for 1/d on [1, 2): relative error 1/99."""
    reciprocal_log: Coefficients
    """Minimax quadratic for 1/d on [1.75, 2.5): relative error 1/711."""
    ln2: tuple[float, float]
    """ln(2) in two parts; the first has trailing zeros, so that its product with an exponent is exact."""
    log2e: float
    half_pi: tuple[float, float]
    """pi/2 in two parts; the first fills half a significand."""
    round_magic: float
    """Adding it rounds to an integer, which is then in the low bits."""
    rsqrt_seed: int
    newton_steps: int
    head_mask: int
    """Keeps the upper half of a significand."""
    exp_range: tuple[float, float]
    tanh_range: float
    negligible: float
    """1 + x rounds to 1 below this."""
    linear: float
    """sin(x) and tanh(x) round to x (within 0.1 ulp) below this."""


F32_TABLE: Final = Table(
    exp=(
        0.5,
        0.1666666716337204,
        0.04166646674275398,
        0.00833331048488617,
        0.0013933649752289057,
        0.00019890991097781807,
    ),
    log=(0.6666666865348816, 0.4000031352043152, 0.28532543778419495, 0.23751342296600342),
    tanh=(
        -0.3333333134651184,
        0.1333322525024414,
        -0.05393343046307564,
        0.02147039584815502,
        -0.006942287553101778,
    ),
    sin=(-0.1666666716337204, 0.008333331905305386, -0.00019840087043121457, 2.7249895993008977e-06),
    cos=(0.0416666641831398, -0.001388830249197781, 2.454791683703661e-05),
    reciprocal=(2.1212120056152344, -1.454545497894287, 0.3232323229312897),
    reciprocal_log=(1.4342728853225708, -0.6802480220794678, 0.10670556873083115),
    ln2=(0.693145751953125, 1.428606765330187e-06),
    log2e=1.4426950216293335,
    half_pi=(1.5703125, 0.0004838267923332751),
    round_magic=12582912.0,
    rsqrt_seed=0x5F375A86,
    newton_steps=2,
    head_mask=0xFFFFF000,
    exp_range=(-71.0, 89.0),
    tanh_range=10.0,
    negligible=2.0**-26,
    linear=2.0**-13,
)
F64_TABLE: Final = Table(
    exp=(
        0.5,
        0.1666666666666667,
        0.04166666666666667,
        0.008333333333326136,
        0.0013888888888883748,
        0.00019841269874820627,
        2.4801587325547743e-05,
        2.7557255400206422e-06,
        2.75572736431103e-07,
        2.5105217004720745e-08,
        2.0914686968086876e-09,
    ),
    log=(
        0.6666666666666666,
        0.4000000000000794,
        0.28571428567275936,
        0.2222222304835159,
        0.18181737626302938,
        0.15388867805613718,
        0.13209708242059462,
        0.13609030262858499,
    ),
    tanh=(
        -0.3333333333333333,
        0.1333333333333323,
        -0.05396825396808919,
        0.021869488525836745,
        -0.008863235197797702,
        0.003592121783201609,
        -0.0014557606808451268,
        0.0005894659482848757,
        -0.00023635079097275086,
        8.819014552796585e-05,
        -2.2948547411684485e-05,
    ),
    sin=(
        -0.16666666666666666,
        0.008333333333333331,
        -0.00019841269841265063,
        2.7557319219337312e-06,
        -2.5052106231802837e-08,
        1.6058531516797758e-10,
        -7.586691094197958e-13,
    ),
    cos=(
        0.041666666666666664,
        -0.0013888888888887398,
        2.480158729876456e-05,
        -2.7557317271145144e-07,
        2.087614614655861e-09,
        -1.1382623647474604e-11,
    ),
    reciprocal=(2.121212121212121, -1.4545454545454546, 0.32323232323232326),
    reciprocal_log=(1.4342729119991664, -0.6802480070859167, 0.10670556973896733),
    ln2=(0.6931471805592082, 7.371002565167799e-13),
    log2e=1.4426950408889634,
    half_pi=(1.5707963109016418, 1.5893254773528196e-08),
    round_magic=6755399441055744.0,
    rsqrt_seed=0x5FE6EB50C7B537A9,
    newton_steps=3,
    head_mask=0xFFFFFFFFF8000000,
    exp_range=(-673.0, 711.0),
    tanh_range=20.0,
    negligible=2.0**-55,
    linear=2.0**-28,
)

TWO_OVER_PI: Final = (
    0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041, 0xFE5163AB, 0xDEBBC561,
    0xB7246E3A, 0x424DD2E0, 0x06492EEA, 0x09D1921C, 0xFE1DEB1C, 0xB129A73E, 0xE88235F5, 0x2EBB4484,
    0xE99C7026, 0xB45F7E41, 0x3991D639, 0x835339F4, 0x9C845F8B, 0xBDF9283B, 0x1FF897FF, 0xDE05980F,
    0xEF2F118B, 0x5A0A6D1F, 0x6D367ECF, 0x27CB09B7, 0x4F463F66, 0x9E5FEA2D, 0x7527BAC7, 0xEBE5F17B,
    0x3D0739F7, 0x8A5292EA, 0x6BFB5FB1, 0x1F8D5D08, 0x56033046,
)  # fmt: skip
"""The first 1184 bits of the fraction 2/pi: enough for the largest double."""


def table_of(form: Format) -> Table:
    """The constants of a precision."""
    return F32_TABLE if form.fraction_bits == 23 else F64_TABLE
