"""What makes a module portable: contraction forbidden everywhere, and no arithmetic that drivers may round freely."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from dashi.errors import PortabilityError
from dashi.kernels.spirv._module import Instruction, Module, text
from dashi.kernels.spirv._ops import OPS

NO_CONTRACTION: Final = 42
_RELAXED, _BUILTIN, _ROUNDING, _FAST = 0, 11, 39, 40
ARITHMETIC: Final = frozenset(
    "FNegate FAdd FSub FMul FDiv FRem FMod VectorTimesScalar MatrixTimesScalar VectorTimesMatrix MatrixTimesVector "
    "MatrixTimesMatrix OuterProduct Dot".split()
)
"""Float arithmetic that a driver might fuse with its neighbours."""

_BEFORE_TYPES: Final = frozenset(
    "Capability Extension ExtInstImport MemoryModel EntryPoint ExecutionMode String Source SourceContinued "
    "SourceExtension Name MemberName ModuleProcessed Decorate MemberDecorate Line NoLine Nop".split()
)
# Correctly rounded, exact, or mere moves: what may make a float in a portable kernel.
_FLOAT: Final = frozenset(
    "FAdd FSub FMul FNegate Select Phi Load CopyObject CopyLogical CompositeConstruct CompositeExtract CompositeInsert "
    "VectorShuffle VectorExtractDynamic VectorInsertDynamic Bitcast ConvertSToF ConvertUToF FConvert Constant "
    "ConstantComposite ConstantNull SpecConstant SpecConstantComposite Function FunctionParameter FunctionCall ExtInst "
    "AtomicLoad AtomicExchange GroupNonUniformBroadcast GroupNonUniformBroadcastFirst GroupNonUniformShuffle "
    "GroupNonUniformShuffleXor GroupNonUniformQuadBroadcast".split()
)
_REFUSED: Final = {
    "FDiv": "use p_divide of portable.glsl.",
    "FRem": "use p_divide of portable.glsl and integer steps.",
    "FMod": "use p_divide of portable.glsl and integer steps.",
    "Dot": "write the products with mul and add them in order.",
    "VectorTimesScalar": "multiply the parts one by one with mul.",
    "IsNan": "test the bits with is_nan_bits.",
    "IsInf": "test the bits: a driver may assume that there are no infinities.",
    "Undef": "give the variable a value on every path.",
}
# GLSL.std.450 by number: the sign of a float, integers, and bit casts of doubles are exact; the rest is not.
_EXACT: Final = frozenset({4, 5, 7, 38, 39, 41, 42, 44, 45, 59, 65, 73, 74, 75})
_GLSL_NAMES: Final = {
    1: "Round", 2: "RoundEven", 3: "Trunc", 6: "FSign", 8: "Floor", 9: "Ceil", 10: "Fract", 13: "Sin", 14: "Cos",
    15: "Tan", 16: "Asin", 17: "Acos", 18: "Atan", 19: "Sinh", 20: "Cosh", 21: "Tanh", 25: "Atan2", 26: "Pow",
    27: "Exp", 28: "Log", 29: "Exp2", 30: "Log2", 31: "Sqrt", 32: "InverseSqrt", 37: "FMin", 40: "FMax", 43: "FClamp",
    46: "FMix", 48: "Step", 49: "SmoothStep", 50: "Fma", 53: "Ldexp", 58: "PackHalf2x16", 62: "UnpackHalf2x16",
    66: "Length", 67: "Distance", 68: "Cross", 69: "Normalize", 79: "NMin", 80: "NMax", 81: "NClamp",
}  # fmt: skip
_GLSL_FIXES: Final = {
    "Sqrt": "use p_sqrt of portable.glsl.", "InverseSqrt": "use p_rsqrt of portable.glsl.",
    "Exp": "use p_exp of portable.glsl.", "Log": "use p_log of portable.glsl.", "Sin": "use p_sin of portable.glsl.",
    "Cos": "use p_cos of portable.glsl.", "Tanh": "use p_tanh of portable.glsl.",
    "Fma": "write mul(a, b) + c, which rounds twice.", "FMin": "compare order_key values.",
    "FMax": "compare order_key values.", "FClamp": "compare order_key values.", "NMin": "compare order_key values.",
    "NMax": "compare order_key values.", "NClamp": "compare order_key values.",
}  # fmt: skip
_OTHERWISE: Final = "use add, subtract, multiply, compares, integers and the functions of portable.glsl."


def forbid_contraction(module: Module) -> Module:
    """The module with `NoContraction` on every float arithmetic result, so that authors need not write `precise`; and
    without the relaxed precision that the compiler puts on integers of subgroups."""
    targets = contractable(module)
    module = _exact_integers(module)
    split = next(
        (n for n, i in enumerate(module.instructions) if i.info.name not in _BEFORE_TYPES), len(module.instructions)
    )
    added = tuple(Instruction(OPS[71], (target, NO_CONTRACTION)) for target in targets)
    return replace(module, instructions=(*module.instructions[:split], *added, *module.instructions[split:]))


def _exact_integers(module: Module) -> Module:
    builtins = {i.words[0] for i in module.all("Decorate") if i.words[1] == _BUILTIN}
    integers = {i.words[0] for i in module.all("TypeInt")}
    integers |= {i.words[0] for i in module.all("TypeVector") if i.words[1] in integers}

    def needless(i: Instruction) -> bool:
        if i.info.name != "Decorate" or i.words[1] != _RELAXED:
            return False
        return i.words[0] in builtins or module.defined[i.words[0]].result_type in integers

    return replace(module, instructions=tuple(i for i in module.instructions if not needless(i)))


def contractable(module: Module) -> list[int]:
    """Results of float arithmetic that a driver may still contract."""
    already = {i.words[0] for i in module.all("Decorate") if i.words[1] == NO_CONTRACTION}
    return [i.result for i in module.all(*ARITHMETIC) if i.result is not None and i.result not in already]


def lint_portable(module: Module, where: str) -> None:
    """Raise a PortabilityError for the first instruction whose result could differ between devices."""
    for what, fix in _findings(module):
        raise PortabilityError(f"{where} is declared portable, but {what}.", fix)


def _findings(module: Module) -> Iterator[tuple[str, str]]:
    floats = _float_types(module)
    sets = {i.words[0]: text(i.words[1:]).decode(errors="replace") for i in module.all("ExtInstImport")}
    for i in module.all("Decorate", "MemberDecorate"):
        mark = i.words[1] if i.info.name == "Decorate" else i.words[2]
        if mark in (_RELAXED, _ROUNDING, _FAST):
            yield "it relaxes precision (mediump, lowp or fast maths)", "remove the precision qualifier."
    for i in module.instructions:
        name = i.info.name
        if name == "ExtInst":
            yield from _extended(i, sets)
        elif name in _REFUSED and (name != "Undef" or i.result_type in floats):
            yield f"it uses {i.name}{_about(module, i)}", _REFUSED[name]
        elif i.result_type in floats and name not in _FLOAT:
            yield f"it uses {i.name}{_about(module, i)}", _OTHERWISE
        elif name == "FConvert" and floats[i.words[0]] < _source_bits(module, i, floats):
            yield "it narrows a double to a float, which rounds as the driver likes", "keep one precision."
    if contractable(module):
        yield "its arithmetic may be contracted", "build it again with `dashi kernels build`."


def _float_types(module: Module) -> dict[int | None, int]:
    """Types that hold floats (scalars, vectors, matrices, and arrays and structures of them), with their bits."""
    bits: dict[int | None, int] = {}
    for i in module.all("TypeFloat", "TypeVector", "TypeMatrix", "TypeArray", "TypeStruct", "TypeCooperativeMatrixKHR"):
        if i.info.name == "TypeFloat":
            bits[i.words[0]] = i.words[1]
            continue
        parts = i.operands if i.info.name == "TypeStruct" else i.operands[:1]
        inner = [bits[p] for p in parts if p in bits]
        if inner:
            bits[i.words[0]] = max(inner)
    return bits


def _source_bits(module: Module, instruction: Instruction, floats: dict[int | None, int]) -> int:
    return floats.get(module.defined[instruction.operands[0]].result_type, 64)


def _extended(instruction: Instruction, sets: dict[int, str]) -> Iterator[tuple[str, str]]:
    number = instruction.operands[1]
    if sets.get(instruction.operands[0]) != "GLSL.std.450":
        yield "it uses an instruction set other than GLSL.std.450", _OTHERWISE
    elif number not in _EXACT:
        name = _GLSL_NAMES.get(number, f"function {number}")
        yield f"it uses GLSL.std.450 {name}", _GLSL_FIXES.get(name, _OTHERWISE)


def _about(module: Module, instruction: Instruction) -> str:
    """The function that the instruction stands in, if the module names it."""
    names = {i.words[0]: text(i.words[1:]).decode(errors="replace") for i in module.all("Name")}
    inside = None
    for i in module.instructions:
        if i.info.name == "Function":
            inside = i.words[1]
        if i is instruction:
            break
    called = names.get(inside, "") if inside is not None else ""
    return f" in {called.split('(')[0]}" if called else ""
