"""Attention with one definition, whatever the batch, the padding, the chunks of queries and the split over keys.

Key j has the position j. For a query at position p (`offset` + `positions[b]` + its index) a key counts if all that is
asked for holds: j < `lengths[b]`; `mask[b, j]` > 0, or `mask[b, h, i, j]` where the mask has more than two axes; j <= p
(`causal`); p - j < `window`, unless that is 0; and its score is above minus infinity. An `offset` or a position beyond
2^30 is as 2^30. With s = canon(scale canon(q . k)), the product summed over D in the order tree64, and
s = canon(s + bias) where there is one:

- Run r holds the positions 64 r to 64 r + 63. m_r is the largest score of those that count (NaN wins), the weights are
  exp(s - m_r); l_r is their sum, and o_r the sum of mul(weight, value), in the order of positions.
- M is the largest m_r, and f_r = exp(m_r - M), over runs in which any key counts. The result is the quotient of the
  sums over runs of mul(f_r, canon(o_r)) and of mul(f_r, canon(l_r)), in the order tree64; 0 where no key counts.

Keys that do not count are left out, not multiplied by 0: whatever lies there, NaN too, does not matter. So runs can be
skipped, and worked on anywhere: the bits stay. Where few rows meet many keys, `_split` makes each run the work of a
workgroup.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from dashi.errors import LimitError, ShapeError
from dashi.kernels._fused_abi import dense, indices, stretched
from dashi.kernels._work import RUN, ceil_div, next_power_of_two, split_work
from dashi.kernels.abi import Binding, Call, Dispatch, Number, Operand, Plan, Scalar, Shader, Spec, View
from dashi.kernels.attention import _split as split
from dashi.kernels.attention._reference import LAST_POSITION, Rules, attend
from dashi.types import Cost, HostArray, Shape

LARGEST_DEPTH: Final = 256
SLICE: Final = 16
SLICES_PER_RUN: Final = 4
NUMBERS: Final = (
    "sq", "sk", "rows", "shared_by", "heads", "per_head", "first_block", "blocks", "stride", "begin_run", "end_run",
    "phase", "causal", "window", "offset", "q_batch", "q_head", "q_step", "k_batch", "k_head", "k_step", "v_batch",
    "v_head", "v_step", "r_batch", "r_head", "r_step",
)  # fmt: skip
FIND_PEAKS, ADD_UP, PEAKS_IN, PEAKS_OUT, SUMS_IN, SUMS_OUT, FINISH, SPLIT = (1 << bit for bit in range(8))
MOST_HELD: Final = 4
EXTRAS: Final = ("mask", "bias", "lengths", "positions")
_AXES: Final = ("BATCH", "HEAD", "QUERY", "KEY")
_LARGEST: Final = {"window": (1 << 32) - 1 - RUN**3, "offset": LAST_POSITION}
"""Larger numbers mean the same as these, and sums of those may wrap round."""
SCALARS: Final = (
    Scalar("scale", default=1.0, doc="what dots of queries and keys are multiplied by, often 1 / sqrt(D)"),
    Scalar("causal", "u32", 0, "1: keys behind the query's position do not count"),
    Scalar("window", "u32", 0, "keys of so many positions up to the query's count; 0: all"),
    Scalar("offset", "u32", 0, "position of the first query"),
    Scalar("heads_last", "u32", 0, "1: arrays are (B, S, H, D) instead of (B, H, S, D)"),
)
TUNINGS: Final = {
    "rows_32": {"groups": 8, "split": split.WHERE_IDLE},
    "rows_16": {"groups": 4, "split": split.WHERE_IDLE},
    "rows_64": {"groups": 16, "split": split.WHERE_IDLE},
    "split": {"groups": 8, "split": split.ALWAYS},
    "split_rows_8": {"groups": 2, "split": split.ALWAYS},
    "whole": {"groups": 8, "split": split.NEVER},
}
"""Groups of four query rows of a workgroup, at most; and whether each run of keys has a workgroup of its own."""

SHADER: Final = Shader(
    (
        *(Binding(name) for name in ("q", "k", "v", "mask", "bias")),
        Binding("lengths", "u32"),
        Binding("positions", "u32"),
        *(Binding(name, access="readwrite") for name in ("peaks", "carried", "result")),
    ),
    (*(Scalar(name, "u32") for name in NUMBERS), Scalar("scale")),
    (
        Spec("LOCAL", 64),
        Spec("D", 64),
        Spec("EACH", 4),
        Spec("HELD", 1),
        *(Spec(f"HAS_{name.upper()}", 0) for name in EXTRAS),
        *(Spec(f"{name}_{part}", int(part == "UNIT")) for name in "QKV" for part in ("START", "UNIT")),
        *(Spec(f"{name}_{part}", 0) for name in ("MASK", "BIAS") for part in ("START", *_AXES)),
    ),
    local=("LOCAL", 1, 1),
    includes=("portable.glsl",),
    extensions=("GL_EXT_control_flow_attributes",),
)


@dataclass(frozen=True)
class Sizes:
    """Lengths of a call: batches, heads of queries and of keys, queries, keys, and D."""

    batches: int
    heads: int
    key_heads: int
    queries: int
    keys: int
    depth: int

    @property
    def shared_by(self) -> int:
        """Heads of queries that share a head of keys."""
        return self.heads // max(1, self.key_heads)

    @property
    def rows(self) -> int:
        return self.shared_by * self.queries


@dataclass(frozen=True)
class Attention:
    """Attention with some of the operands that it may have, each read through a view where one is given. Views of q, k
    and v have the axes (B, H, S, D), whatever `heads_last` says of the result."""

    name: str = "attention"
    extras: tuple[str, ...] = ()
    views: Mapping[str, View] = field(default_factory=dict[str, View])

    @property
    def operands(self) -> tuple[Operand, ...]:
        numbers = {"lengths": "u32", "positions": "u32"}
        named = ("q", "k", "v", *self.extras)
        return tuple(Operand(name, numbers.get(name, "T"), view=self.views.get(name)) for name in named)

    def shape_rule(self, shapes: Mapping[str, Shape], scalars: Mapping[str, Number]) -> Sequence[Shape]:
        sizes = self.sizes(self._forms(shapes, scalars))
        shown = self._shown(shapes)
        shape = (sizes.batches, sizes.heads, sizes.queries, sizes.depth)
        for name, want in self._stretches(sizes).items():
            own = shown[name].shape
            if len(own) > len(want) or any(n not in (1, w) for n, w in zip(own[::-1], want[::-1], strict=False)):
                raise ShapeError(
                    f"kernel {self.name!r}: {name} has shape {own}, which does not stretch to {want}.",
                    "pass lengths that agree, or are 1, axis by axis from the last.",
                )
        return ((shape[0], shape[2], shape[1], shape[3]) if scalars["heads_last"] else shape,)

    def _stretches(self, sizes: Sizes) -> dict[str, Shape]:
        """The shapes that the other operands are stretched to."""
        z, keys = sizes.batches, sizes.keys
        scores = (z, sizes.heads, sizes.queries, keys)
        full_shapes: dict[str, Shape] = {"mask": scores, "bias": scores, "lengths": (z,), "positions": (z,)}
        return {name: full_shapes[name] for name in self.extras}

    def _shown(self, shapes: Mapping[str, Shape]) -> dict[str, View]:
        """The other operands; a mask of keys (B, Sk) with axes for heads and queries."""
        shown = {name: self.views.get(name) or dense(shapes[name]) for name in self.extras}
        mask = shown.get("mask")
        if mask is not None and len(mask.shape) == 2:
            (batch, keys), (step, unit) = mask.shape, mask.strides
            shown["mask"] = View((batch, 1, 1, keys), (step, 0, 0, unit), mask.offset)
        return shown

    def _forms(self, shapes: Mapping[str, Shape], scalars: Mapping[str, Number]) -> dict[str, View]:
        """q, k and v with the axes (B, H, S, D)."""
        forms: dict[str, View] = {}
        for name in "qkv":
            view = self.views.get(name)
            if view is None:
                view = dense(shapes[name])
                if scalars["heads_last"] and len(view.shape) == 4:
                    order = (0, 2, 1, 3)
                    view = View(tuple(view.shape[i] for i in order), tuple(view.strides[i] for i in order))
            forms[name] = view
        return forms

    def sizes(self, forms: Mapping[str, View]) -> Sizes:
        """The lengths of q, k and v, which must fit."""
        q, k, v = (forms[name].shape for name in "qkv")
        good = len(q) == len(k) == 4 and k == v and q[0] == k[0] and q[3] == k[3] and k[1] > 0 and q[1] % k[1] == 0
        if not good:
            raise ShapeError(
                f"kernel {self.name!r}: q has shape {q}, k {k} and v {v}, as (B, H, S, D).",
                "pass q (B, H, Sq, D), and k and v (B, Hkv, Sk, D) with H a multiple of Hkv.",
            )
        if not 0 < q[3] <= LARGEST_DEPTH:
            raise LimitError(
                f"kernel {self.name!r}: heads of {q[3]} are asked for; D is 1 to {LARGEST_DEPTH}.", "split the heads."
            )
        return Sizes(q[0], q[1], k[1], q[2], k[2], q[3])

    def rules(self, arrays: Mapping[str, HostArray], scalars: Mapping[str, Number], sizes: Sizes) -> Rules:
        """What the other operands say, stretched."""
        read: dict[str, HostArray] = {}
        shown = self._shown({name: array.shape for name, array in arrays.items()})
        for name, want in self._stretches(sizes).items():
            read[name] = arrays[name].reshape(-1)[indices(stretched(shown[name], want))]
        numbers = (float(scalars["scale"]), bool(scalars["causal"]), int(scalars["window"]), int(scalars["offset"]))
        return Rules(*numbers, *(read.get(name) for name in EXTRAS))

    def reference(self, *arrays: HostArray, **scalars: Number) -> HostArray:
        named = dict(zip((o.name for o in self.operands), arrays, strict=True))
        forms = self._forms({name: array.shape for name, array in named.items()}, scalars)
        with np.errstate(all="ignore"):
            q, k, v = (named[name].reshape(-1)[indices(forms[name])] for name in "qkv")
            result = attend(q, k, v, self.rules(named, scalars, self.sizes(forms)))
        return np.ascontiguousarray(result.transpose(0, 2, 1, 3)) if scalars["heads_last"] else result

    def cost(self, call: Call) -> Cost:
        sizes = self.sizes(self._forms(call.shapes, call.scalars))
        pairs = sizes.batches * sizes.heads * sizes.queries * sizes.keys
        moved = call.bytes("q", "k", "v", "result")
        return Cost(pairs * 4 * sizes.depth, moved, len(self.plan(call).dispatches)) if call.size("result") else Cost()

    def plan(self, call: Call) -> Plan:
        """One dispatch for up to 4096 keys; for more, one for every 4096 to find the maxima, and one to add up. Where
        that would leave a device idle: one with a workgroup for each run, and one that joins them."""
        if call.size("result") == 0:
            return Plan(())
        forms = self._forms(call.shapes, call.scalars)
        sizes = self.sizes(forms)
        runs = ceil_div(sizes.keys, RUN)
        spec, push = self._spec(call, forms, sizes), self._push(call, forms, sizes)
        once = FIND_PEAKS | ADD_UP | FINISH
        rows = sizes.batches * sizes.heads * sizes.queries
        per_head = ceil_div(sizes.rows, spec["LOCAL"] // 4)
        if split.is_split(call, sizes.batches * sizes.key_heads, per_head, rows, runs):
            apart = self._dispatches(
                call, sizes, spec, push, [(0, runs, SPLIT | FIND_PEAKS | ADD_UP | PEAKS_OUT | SUMS_OUT)]
            )
            joined = split.join_dispatches(call, sizes.depth, rows, runs, push)
            return Plan((*apart, *joined), split.scratch(rows, runs, sizes.depth))
        if runs <= RUN and _trips(runs, sizes.depth, spec["LOCAL"], once) <= call.limits.loop_trips:
            return Plan(tuple(self._dispatches(call, sizes, spec, push, [(0, runs, once)])))
        if runs > RUN * RUN:
            raise LimitError(f"{sizes.keys} keys are more than {RUN**3}.", "attend to parts of them.")
        groups = [(first, min(first + RUN, runs)) for first in range(0, runs, RUN)]
        peaks = [(a, b, FIND_PEAKS | PEAKS_OUT | (PEAKS_IN if a else 0)) for a, b in groups]
        sums = [
            (a, b, ADD_UP | PEAKS_IN | (SUMS_IN if a else 0) | (FINISH if b == runs else SUMS_OUT)) for a, b in groups
        ]
        scratch = split.scratch(rows, 1, sizes.depth)
        return Plan(tuple(self._dispatches(call, sizes, spec, push, [*peaks, *sums])), scratch)

    def _dispatches(
        self,
        call: Call,
        sizes: Sizes,
        spec: Mapping[str, int],
        push: Mapping[str, Number],
        ranges: Sequence[tuple[int, int, int]],
    ) -> Iterator[Dispatch]:
        carries = any(phase & (PEAKS_OUT | SUMS_OUT) for _, _, phase in ranges)
        carried = ("peaks", "carried") if carries else ("result", "result")
        extras = (name if name in self.extras else "q" for name in EXTRAS)
        buffers = ("q", "k", "v", *extras, *carried, "result")
        per_head = ceil_div(sizes.rows, spec["LOCAL"] // 4)
        blocks = sizes.batches * sizes.key_heads * per_head
        for begin, end, phase in ranges:
            part = {**push, "per_head": per_head, "begin_run": begin, "end_run": end, "phase": phase}
            apart = end - begin if phase & SPLIT else 1
            trips = _trips((end - begin) // apart, sizes.depth, spec["LOCAL"], phase)
            for share in split_work(blocks * apart, trips, call.limits):
                place = {"first_block": share.first, "blocks": share.beyond, "stride": share.groups}
                yield Dispatch("main", buffers, {**part, **place}, (share.groups, 1, 1), share.trips, spec)

    def _push(self, call: Call, forms: Mapping[str, View], sizes: Sizes) -> dict[str, Number]:
        push: dict[str, Number] = {
            "sq": sizes.queries, "sk": sizes.keys, "rows": sizes.rows, "shared_by": sizes.shared_by,
            "heads": sizes.key_heads,
        }  # fmt: skip
        push |= {name: call.scalars[name] for name in ("scale", "causal")}
        push |= {name: min(int(call.scalars[name]), most) for name, most in _LARGEST.items()}
        shape = (sizes.batches, sizes.heads, sizes.queries, sizes.depth)
        last = call.scalars["heads_last"]
        written = dense((shape[0], shape[2], shape[1], shape[3]) if last else shape).strides
        strides = {name: forms[name].strides for name in "qkv"}
        strides["r"] = (written[0], written[2], written[1], 1) if last else written
        for name, steps in strides.items():
            push |= {
                f"{name}_{axis}": step % (1 << 32) for axis, step in zip(("batch", "head", "step"), steps, strict=False)
            }
        return push

    def _spec(self, call: Call, forms: Mapping[str, View], sizes: Sizes) -> dict[str, int]:
        groups = _row_groups(call, sizes)
        spec = {
            "LOCAL": 16 * groups,
            "D": sizes.depth,
            "EACH": _columns(sizes.depth),
            "HELD": _held(call, sizes, groups),
        }
        spec |= {f"HAS_{name.upper()}": int(name in self.extras) for name in EXTRAS}
        for name in "qkv":
            spec |= {
                f"{name.upper()}_START": forms[name].offset,
                f"{name.upper()}_UNIT": forms[name].strides[3] % (1 << 32),
            }
        full_shapes, shown = self._stretches(sizes), self._shown(call.shapes)
        for name in ("mask", "bias"):
            if name in full_shapes:
                view = stretched(shown[name], full_shapes[name])
                steps = zip(_AXES, view.strides, strict=True)
                spec |= {f"{name.upper()}_{axis}": step % (1 << 32) for axis, step in steps}
                spec[f"{name.upper()}_START"] = view.offset
        return spec


def _row_groups(call: Call, sizes: Sizes) -> int:
    """Groups of four rows of a workgroup: as many as there are, and fit."""
    most = call.tuning.get("groups", next(iter(TUNINGS.values()))["groups"])
    # Invocations that have no rows still bring keys and values, which is what takes time with few rows.
    least = 1 if call.limits.software else 4
    groups = min(most, max(least, next_power_of_two(ceil_div(sizes.rows, 4))))
    while groups > 1 and (16 * groups > call.limits.invocations or _shared(call, groups) > call.limits.shared_bytes):
        groups //= 2
    return groups


def _held(call: Call, sizes: Sizes, groups: int) -> int:
    """Runs whose scores stay in shared memory while the largest is looked for: all of them where they are few and
    fit, else one, and scores are made twice."""
    runs = ceil_div(sizes.keys, RUN)
    return runs if 1 < runs <= MOST_HELD and _shared(call, groups, runs) <= call.limits.shared_bytes else 1


def _shared(call: Call, groups: int, held: int = 1) -> int:
    """Bytes of shared memory: a slice of queries, one of keys or values, weights and maxima of runs, and flags."""
    vectors = SLICE * (groups + 1) + SLICE * (RUN // 4 + 1) + held * (RUN * (groups + 1) + groups) + groups
    return vectors * 4 * call.dtype.size + 16


def _trips(runs: int, depth: int, local: int, phase: int) -> int:
    """Loop iterations of an invocation for one block, those of its slow ways and short loops included."""
    slices, each = ceil_div(depth, SLICE), _columns(depth)
    brought = ceil_div(RUN * SLICE // local, 8)
    parts = ceil_div(depth, SLICE * each)
    scores = 1 + slices * (1 + brought + SLICE) + RUN // 4
    means = RUN // 4 + RUN // 8 + parts * (1 + each * (1 + brought) + RUN)
    found, added = (runs if phase & bit else 0 for bit in (FIND_PEAKS, ADD_UP))
    return 1 + 2 + found * scores + added * (scores + means) + 4 * parts * each


def _columns(depth: int) -> int:
    """Columns of values that an invocation works on at a time: 1, 2 or 4."""
    return min(4, next_power_of_two(ceil_div(depth, SLICE)))
