"""Ternary fields packed into words, so many sites to each: kernels that differ in their code alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dashi.kernels._trits import LENGTHS, SITES, in_turn, random_trits, random_words
from dashi.kernels._work import LOCAL, LOOP_PUSH, ceil_div, loop_plan
from dashi.kernels.abi import Binding, Call, Case, Kernel, Operand, Plan, Scalar, Shader
from dashi.types import Cost, HostArray

FIVES: Final = (*LENGTHS, 9, 10, 11, 19, 20, 21, 24, 25, 26)
"""Lengths for codes of five sites: around bytes and words as well."""
LARGE: Final = 1 << 26


def packing(
    *,
    summary: str,
    reference: Callable[..., HostArray],
    sites: int,
    read: str,
    lengths: tuple[int, ...] = LENGTHS,
    trips: int = 0,
) -> Kernel:
    """The kernel that makes a word of `sites` sites; its shader reads them as `read` ("u32", "u32x4")."""

    def plan(call: Call) -> Plan:
        n = call.size("s")
        return loop_plan(call, ceil_div(n, sites), ("s", "result"), {"n": n}, trips=trips)

    return Kernel(
        summary=summary,
        inputs=(Operand("s", "i8"),),
        outputs=(Operand("result", "u32", (f"size/{sites}",)),),
        shaders={"main": _shader(Binding("s", read), Binding("result", "u32", "write"), Scalar("n", "u32"))},
        plan=plan,
        reference=reference,
        cost=lambda call: _cost(call.size("s"), sites),
        cases=(
            *(Case({"s": (n,)}, fill={"s": fill}) for n, fill in in_turn(lengths)),
            Case({"s": (9, 11)}, fill={"s": random_trits}),
        ),
        bench=(Case({"s": (LARGE,)}, fill={"s": random_trits}),),
        dtypes=("u32",),
    )


def unpacking(
    *,
    summary: str,
    reference: Callable[..., HostArray],
    sites: int,
    written: str,
    push: tuple[Scalar, ...] = (),
    lengths: tuple[int, ...] = LENGTHS,
    trips: int = 0,
) -> Kernel:
    """The kernel that makes the field again; its shader writes it as `written`, and has `push`, which are all n."""

    def plan(call: Call) -> Plan:
        n = int(call.scalars["n"])
        return loop_plan(
            call, ceil_div(n, sites), ("packed", "result"), {scalar.name: n for scalar in push}, trips=trips
        )

    def case(n: int) -> Case:
        return Case({"packed": (ceil_div(n, sites),)}, {"n": n}, {"packed": random_words})

    return Kernel(
        summary=summary,
        inputs=(Operand("packed", "u32", (f"n/{sites}",)),),
        outputs=(Operand("result", "i8", ("n",)),),
        scalars=(SITES,),
        shaders={"main": _shader(Binding("packed", "u32"), Binding("result", written, "write"), *push)},
        plan=plan,
        reference=reference,
        cost=lambda call: _cost(int(call.scalars["n"]), sites),
        cases=tuple(map(case, lengths)),
        bench=(case(LARGE),),
        dtypes=("u32",),
    )


def _shader(given: Binding, made: Binding, *push: Scalar) -> Shader:
    return Shader((given, made), (*LOOP_PUSH, *push), local=(LOCAL, 1, 1))


def _cost(n: int, sites: int) -> Cost:
    return Cost(bytes=n + 4 * ceil_div(n, sites), dispatches=int(n > 0))
