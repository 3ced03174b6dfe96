"""The earlier research code, v4, reproduced in NumPy float64: a compatibility target, with its mistakes left in.

    omega (n, n) --encode--> z (654,) --learn--> A --roll--> z A^t --decode--> omega

`measure` gives the numbers that it reported and compares digit by digit; docs/v4.md says what is wrong with it, and
where dashi does otherwise. Nothing else of the flow lane uses this package.
"""

from dashi.flow.v4.decode import decode, decode_anchors, lowpass
from dashi.flow.v4.encode import Encoder, Layout
from dashi.flow.v4.golden import GOLDEN, Row
from dashi.flow.v4.linear import learn, roll
from dashi.flow.v4.measure import V4Report, measure
from dashi.flow.v4.solver import Solver

__all__ = [
    "GOLDEN",
    "Encoder",
    "Layout",
    "Row",
    "Solver",
    "V4Report",
    "decode",
    "decode_anchors",
    "learn",
    "lowpass",
    "measure",
    "roll",
]
