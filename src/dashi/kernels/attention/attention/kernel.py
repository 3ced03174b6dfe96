"""attention: softmax(scale q k^T + ...) v, portable, whatever the batch, padding and chunks.

q is (B, H, Sq, D), k and v are (B, Hkv, Sk, D), H a multiple of Hkv; with `heads_last` they and the result are
(B, S, H, D). Key j has the position j; query i has the position `offset` + i. A key counts if j <= the query's position
(`causal`), if it is among the last `window` positions up to there (unless 0), and if its score is above minus infinity.

Scores are s = canon(scale canon(q . k)), summed over D in the order tree64. Run r holds the positions 64 r to
64 r + 63: m_r is the largest score in it that counts, exp(s - m_r) are the weights, l_r and o_r the sums of weights and
of mul(weight, value) in the order of positions. With M the largest m_r and f_r = exp(m_r - M), the result is the sum
over runs of mul(f_r, canon(o_r)) divided by that of mul(f_r, canon(l_r)), both in the order tree64; 0 where no key
counts. Keys that do not count are left out, not multiplied by 0. `dashi.kernels.attention_with` adds masks, biases and
lengths.
"""

from typing import Final

from dashi.kernels.abi import Case, Kernel, Operand
from dashi.kernels.attention import _attention as attention
from dashi.kernels.attention._split import JOIN_SHADER

ONE: Final = attention.Attention()


def _case(q: tuple[int, ...], keys: tuple[int, int], **scalars: float) -> Case:
    heads, length = keys
    if scalars.get("heads_last"):
        held = (q[0], length, heads, q[3])
        q = (q[0], q[2], q[1], q[3])
    else:
        held = (q[0], heads, length, q[3])
    return Case({"q": q, "k": held, "v": held}, {"scale": 0.125, **scalars})


KERNEL = Kernel(
    summary="attention: means of v weighted by softmax(scale q k^T), causal, in windows, with shared keys",
    inputs=ONE.operands,
    outputs=(Operand("result"),),
    scalars=attention.SCALARS,
    shape_rule=ONE.shape_rule,
    shaders={"main": attention.SHADER, "join": JOIN_SHADER},
    plan=ONE.plan,
    reference=ONE.reference,
    cost=ONE.cost,
    cases=(
        _case((1, 1, 1, 1), (1, 1)),
        _case((1, 2, 3, 1), (2, 0)),
        _case((2, 2, 5, 20), (1, 63), causal=1, offset=58),
        _case((1, 4, 33, 20), (2, 65), causal=1, heads_last=1),
        _case((2, 1, 2, 70), (1, 200), heads_last=1, window=100, offset=190),
        _case((1, 1, 1, 20), (1, 4200), causal=1, offset=4150),
    ),
    bench=(
        _case((1, 12, 128, 32), (12, 128)),
        _case((32, 12, 128, 32), (12, 128)),
        _case((1, 32, 2048, 128), (8, 2048), causal=1),
        _case((8, 32, 1, 128), (8, 4096), causal=1, offset=4095),
        _case((1, 8, 1, 128), (8, 4096), causal=1, offset=4095),
        _case((1, 32, 1, 128), (8, 4096), causal=1, offset=4095),
        _case((1, 32, 1, 128), (8, 32768), causal=1, offset=32767),
    ),
    tunings=attention.TUNINGS,
)
