"""Machine code as text, read line by line: which instructions fuse, estimate or flush, on each vendor's hardware.

Integer division is made of a float reciprocal on every GPU (of an integer that was converted; on Apple's it is refined
by two fused multiply-adds), whose result is corrected in integers. It is told apart by following registers: the
reciprocal of a converted integer, and what is fused with it, belong to a division.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple


class MachineInstruction(NamedTuple):
    """One instruction: its name, the registers that it writes, and those that it reads."""

    name: str
    targets: tuple[str, ...]
    sources: tuple[str, ...]


@dataclass(frozen=True)
class InstructionCounts:
    """Instructions of a shader's machine code, by what they do to floats."""

    instructions: int = 0
    fused: int = 0
    """Multiply-adds that round once."""
    unfused: int = 0
    """Multiply-adds in one instruction that round twice."""
    estimates: int = 0
    """Reciprocals, roots, exponentials, logarithms, sines that the hardware makes."""
    divisions: int = 0
    """Reciprocals that belong to a division of integers."""
    flushing: int = 0
    """Instructions that say they flush subnormals."""


@dataclass(frozen=True)
class Isa:
    """How to read one vendor's text: lines, and the names of instructions that matter (whole names, as expressions)."""

    read: Callable[[str], Iterator[MachineInstruction]]
    fused: str
    unfused: str
    estimates: str
    reciprocals: str
    converts: str
    moves: str
    flushing: str
    refines_divisions: bool = False
    """Whether a division of integers has fused multiply-adds."""


def count(isa: Isa, text: str) -> InstructionCounts:
    """InstructionCounts the instructions of a text."""
    totals = dict.fromkeys(InstructionCounts.__dataclass_fields__, 0)
    tags: dict[str, str] = {}
    for instruction in isa.read(text):
        totals["instructions"] += 1
        kind, tag = _classify(isa, instruction, {tags.get(source, "") for source in instruction.sources})
        if kind:
            totals[kind] += 1
        if re.fullmatch(isa.flushing, instruction.name):
            totals["flushing"] += 1
        for target in instruction.targets:
            tags[target] = tag
    return InstructionCounts(**totals)


def _classify(isa: Isa, instruction: MachineInstruction, tags: set[str]) -> tuple[str, str]:
    """The field of `InstructionCounts` that an instruction belongs to, and the tag of what it writes."""
    name = instruction.name
    if re.fullmatch(isa.converts, name):
        return "", "integer"
    if re.fullmatch(isa.reciprocals, name) and "integer" in tags:
        return "divisions", "reciprocal"
    if re.fullmatch(isa.reciprocals, name) or re.fullmatch(isa.estimates, name):
        return "estimates", ""
    if re.fullmatch(isa.fused, name):
        return ("", "reciprocal") if isa.refines_divisions and "reciprocal" in tags else ("fused", "")
    if re.fullmatch(isa.unfused, name):
        return "unfused", ""
    if re.fullmatch(isa.moves, name):
        return "", next(iter(sorted(tags - {""})), "")
    return "", ""


_RANGE: Final = re.compile(r"([vs])\[(\d+):(\d+)\]")


def _amd_registers(operand: str) -> tuple[str, ...]:
    whole = _RANGE.search(operand)
    if whole:
        return tuple(f"{whole[1]}{n}" for n in range(int(whole[2]), int(whole[3]) + 1))
    return tuple(re.findall(r"\b[vs]\d+\b|\bvcc\b", operand))


def _read_amd(text: str) -> Iterator[MachineInstruction]:
    """`v_mul_f32_e32 v3, s8, v3  ; 10060608`; two instructions that are issued together have `::` between them."""
    for line in text.splitlines():
        for part in line.partition(";")[0].split("::"):
            name, _, operands = part.strip().partition(" ")
            if re.fullmatch(r"[a-z]\w+", name):
                target, *sources = operands.split(",") if operands else [""]
                yield MachineInstruction(
                    name, _amd_registers(target), tuple(r for s in sources for r in _amd_registers(s))
                )


def _nvk_registers(operands: str) -> tuple[str, ...]:
    registers: list[str] = []
    for letters, first, end in re.findall(r"\b(ur|up|r|p)(\d+)(?:\.\.(\d+))?", operands):
        registers += [f"{letters}{n}" for n in range(int(first), int(end) if end else int(first) + 1)]
    return tuple(registers)


_NVK: Final = re.compile(r"^\s+(?:([^=]*?)\s*=\s+)?(?:@\S+\s+)?([a-z]\w*(?:\.\S+)?)\s*(.*)$")


def _read_nvk(text: str) -> Iterator[MachineInstruction]:
    """`r1 = mufu.rcp.f32 r1  // delay=2`."""
    for line in text.splitlines():
        match = _NVK.match(line.partition("//")[0].rstrip())
        if match:
            yield MachineInstruction(match[2], _nvk_registers(match[1] or ""), _nvk_registers(match[3]))


_APPLE: Final = re.compile(r"^\s*[0-9a-f]+: [0-9a-f]{4,}\s+([a-z]\w*)\s*(.*)$")


def _apple_registers(operand: str) -> tuple[str, ...]:
    registers: list[str] = []
    for wide, name in re.findall(r"(?<![a-z0-9])(d?)([ru]\d+[lh]?)", operand.replace("_", " ")):
        number = int(re.sub(r"\D", "", name))
        registers += [f"{name[0]}{number}", f"{name[0]}{number + 1}"] if wide else [name]
    return tuple(registers)


def _read_apple(text: str) -> Iterator[MachineInstruction]:
    """`68: 8a0d8482  rcp  $r3, $r2`: the listing behind the compiler's other texts."""
    for line in text.splitlines():
        match = _APPLE.match(line)
        if match:
            target, _, sources = match[2].partition(",")
            yield MachineInstruction(match[1], _apple_registers(target), _apple_registers(sources))


_ADRENO: Final = re.compile(r"^((?:\([a-z0-9]+\)\s*)*)([a-z]\w*(?:\.\w+)*)\s+(\S.*)$")
_PARTS: Final = "xyzw"


def _adreno_registers(operand: str, repeats: int) -> tuple[str, ...]:
    registers: list[str] = []
    for half, number, part in re.findall(r"(?<![a-z0-9])(h?r)(\d+)\.([xyzw])", operand):
        start = 4 * int(number) + _PARTS.index(part)
        registers += [f"{half}{n // 4}.{_PARTS[n % 4]}" for n in range(start, start + 1 + repeats)]
    return tuple(registers)


def _read_adreno(text: str) -> Iterator[MachineInstruction]:
    """`(rpt1)cov.u32f32 r48.w, (r)c504.z`; a repeated instruction goes on with the next registers."""
    for line in text.splitlines():
        match = _ADRENO.match(line.strip())
        if match and not line.startswith((";", "@")):
            repeated = re.search(r"\(rpt(\d)\)", match[1])
            repeats = int(repeated[1]) if repeated else 0
            target, _, sources = match[3].partition(",")
            for _ in range(1 + repeats):
                yield MachineInstruction(
                    match[2], _adreno_registers(target, repeats), _adreno_registers(sources, repeats)
                )


ISAS: Final[Mapping[str, Isa]] = {
    "amd": Isa(
        _read_amd,
        # GCN's mad and mac round twice; those of integers have other suffixes.
        fused=r"v_(?:pk_|dual_)?(?:fma|fmac|fmaak|fmamk|fma_mix\w*|dot\d\w*)_f(?:16|32|64)\w*|v_div_fmas_\w+|v_wmma_\w+",
        unfused=r"v_(?:mad|mac|madak|madmk)(?:_legacy)?_f(?:16|32)\w*",
        estimates=r"v_(?:s_)?(?:exp|log|rsq|sqrt|sin|cos)(?:_legacy)?_f\w+|v_div_(?:scale|fixup)_\w+",
        reciprocals=r"v_(?:s_)?rcp(?:_iflag|_legacy)?_f\w+",
        converts=r"v_cvt_f\d+_[ui]\d+\w*",
        moves=r"v_mov_b32\w*|v_readfirstlane_b32\w*|s_mov_b32",
        flushing=r"s_denorm_mode|s_setreg\w*|v_(?:mad|mac|madak|madmk)_f32\w*",
    ),
    "nvk": Isa(
        _read_nvk,
        fused=r"(?:ffma|dfma|hfma2)(?:\..*)?|h?mma\..*",
        unfused=r"(?!)",
        estimates=r"mufu\..*",
        reciprocals=r"mufu\.rcp(?:\..*)?",
        converts=r"i2f\..*",
        moves=r"mov|r2ur",
        flushing=r"[fh]\w+\..*\bftz\b.*",
    ),
    "apple": Isa(
        _read_apple,
        fused=r"[fh]*ffma(?:16|32)?|h?fma(?:16|32)?",
        unfused=r"(?!)",
        estimates=r"rsqrt(?:_special)?|log2|exp2|sin_pt_\d|srsqrt",
        reciprocals=r"rcp",
        converts=r"[us]\d+_to_f\w*",
        moves=r"mov",
        flushing=r"(?!)",
        refines_divisions=True,
    ),
    "adreno": Isa(
        _read_adreno,
        fused=r"(?!)",  # mad.f32 rounds twice, and there is no other
        unfused=r"mad\.f(?:16|32)",
        estimates=r"h?(?:rsq|sqrt|log2|exp2|sin|cos)",
        reciprocals=r"h?rcp",
        converts=r"cov\.[us]\d+f\d+",
        moves=r"mov\.[fus]\d+[fus]\d+",
        flushing=r"(?!)",
    ),
}
"""By vendor."""
