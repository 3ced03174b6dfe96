"""The SPIR-V instructions that a compute shader here may hold, with the layout of their words.

A layout is a string with one letter per operand: T result type, R result id, i id, l literal word, s literal string,
I any further ids, L any further words. Numbers and layouts are those of the SPIR-V specification, section 3.52.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final


@dataclass(frozen=True)
class Opcode:
    """One instruction of the specification."""

    number: int
    name: str
    layout: str

    @cached_property
    def has_type(self) -> bool:
        return self.layout.startswith("T")

    @cached_property
    def has_result(self) -> bool:
        return "R" in self.layout[:2]

    @cached_property
    def least(self) -> int:
        """Fewest words after the first."""
        return sum(letter not in "IL" for letter in self.layout)

    @cached_property
    def exact(self) -> bool:
        """Whether it has no operand of varying length."""
        return not set(self.layout) & set("ILs")

    @cached_property
    def has_text(self) -> bool:
        """Whether a string among its words moves those behind it."""
        return "s" in self.layout

    @cached_property
    def ids(self) -> tuple[int, ...]:
        """Which of its words are ids that it refers to, where it has no text; further ones may follow at `more_ids`."""
        return tuple(at for at, letter in enumerate(self.layout) if letter in "Ti")

    @cached_property
    def more_ids(self) -> int | None:
        """The word from which on all are ids, where it has no text."""
        return self.layout.index("I") if "I" in self.layout else None

    @cached_property
    def is_type(self) -> bool:
        return self.name.startswith("Type")

    @cached_property
    def is_declared(self) -> bool:
        """Whether it makes a type or a constant."""
        return self.name.startswith(("Type", "Constant", "SpecConstant"))


_TABLE: Final = """
0 Nop -|1 Undef TR|2 SourceContinued s|3 Source llL|4 SourceExtension s|5 Name is|6 MemberName ils|7 String Rs
8 Line ill|10 Extension s|11 ExtInstImport Rs|12 ExtInst TRilI|14 MemoryModel ll|15 EntryPoint lisI
16 ExecutionMode ilL|17 Capability l|19 TypeVoid R|20 TypeBool R|21 TypeInt Rll|22 TypeFloat RlL|23 TypeVector Ril
24 TypeMatrix Ril|28 TypeArray Rii|29 TypeRuntimeArray Ri|30 TypeStruct RI|32 TypePointer Rli|33 TypeFunction RiI
41 ConstantTrue TR|42 ConstantFalse TR|43 Constant TRlL|44 ConstantComposite TRI|46 ConstantNull TR
48 SpecConstantTrue TR|49 SpecConstantFalse TR|50 SpecConstant TRlL|51 SpecConstantComposite TRI
52 SpecConstantOp TRlL|54 Function TRli|55 FunctionParameter TR|56 FunctionEnd -|57 FunctionCall TRiI
59 Variable TRlI|61 Load TRiL|62 Store iiL|63 CopyMemory iiL|65 AccessChain TRiI|66 InBoundsAccessChain TRiI
68 ArrayLength TRil|71 Decorate ilL|72 MemberDecorate illL|77 VectorExtractDynamic TRii|78 VectorInsertDynamic TRiii
79 VectorShuffle TRiiL|80 CompositeConstruct TRI|81 CompositeExtract TRiL|82 CompositeInsert TRiiL|83 CopyObject TRi
84 Transpose TRi|109 ConvertFToU TRi|110 ConvertFToS TRi|111 ConvertSToF TRi|112 ConvertUToF TRi|113 UConvert TRi
114 SConvert TRi|115 FConvert TRi|116 QuantizeToF16 TRi|124 Bitcast TRi|126 SNegate TRi|127 FNegate TRi|128 IAdd TRii
129 FAdd TRii|130 ISub TRii|131 FSub TRii|132 IMul TRii|133 FMul TRii|134 UDiv TRii|135 SDiv TRii|136 FDiv TRii
137 UMod TRii|138 SRem TRii|139 SMod TRii|140 FRem TRii|141 FMod TRii|142 VectorTimesScalar TRii
143 MatrixTimesScalar TRii|144 VectorTimesMatrix TRii|145 MatrixTimesVector TRii|146 MatrixTimesMatrix TRii
147 OuterProduct TRii|148 Dot TRii|149 IAddCarry TRii|150 ISubBorrow TRii|151 UMulExtended TRii|152 SMulExtended TRii
154 Any TRi|155 All TRi|156 IsNan TRi|157 IsInf TRi|164 LogicalEqual TRii|165 LogicalNotEqual TRii|166 LogicalOr TRii
167 LogicalAnd TRii|168 LogicalNot TRi|169 Select TRiii|170 IEqual TRii|171 INotEqual TRii|172 UGreaterThan TRii
173 SGreaterThan TRii|174 UGreaterThanEqual TRii|175 SGreaterThanEqual TRii|176 ULessThan TRii|177 SLessThan TRii
178 ULessThanEqual TRii|179 SLessThanEqual TRii|180 FOrdEqual TRii|181 FUnordEqual TRii|182 FOrdNotEqual TRii
183 FUnordNotEqual TRii|184 FOrdLessThan TRii|185 FUnordLessThan TRii|186 FOrdGreaterThan TRii
187 FUnordGreaterThan TRii|188 FOrdLessThanEqual TRii|189 FUnordLessThanEqual TRii|190 FOrdGreaterThanEqual TRii
191 FUnordGreaterThanEqual TRii|194 ShiftRightLogical TRii|195 ShiftRightArithmetic TRii|196 ShiftLeftLogical TRii
197 BitwiseOr TRii|198 BitwiseXor TRii|199 BitwiseAnd TRii|200 Not TRi|201 BitFieldInsert TRiiii
202 BitFieldSExtract TRiii|203 BitFieldUExtract TRiii|204 BitReverse TRi|205 BitCount TRi|224 ControlBarrier iii
225 MemoryBarrier ii|227 AtomicLoad TRiii|228 AtomicStore iiii|229 AtomicExchange TRiiii
230 AtomicCompareExchange TRiiiiii|232 AtomicIIncrement TRiii|233 AtomicIDecrement TRiii|234 AtomicIAdd TRiiii
235 AtomicISub TRiiii|236 AtomicSMin TRiiii|237 AtomicUMin TRiiii|238 AtomicSMax TRiiii|239 AtomicUMax TRiiii
240 AtomicAnd TRiiii|241 AtomicOr TRiiii|242 AtomicXor TRiiii|245 Phi TRI|246 LoopMerge iilL|247 SelectionMerge il
248 Label R|249 Branch i|250 BranchConditional iiiL|251 Switch iiL|253 Return -|254 ReturnValue i|255 Unreachable -
317 NoLine -|330 ModuleProcessed s|333 GroupNonUniformElect TRi|334 GroupNonUniformAll TRii
335 GroupNonUniformAny TRii|336 GroupNonUniformAllEqual TRii|337 GroupNonUniformBroadcast TRiii
338 GroupNonUniformBroadcastFirst TRii|339 GroupNonUniformBallot TRii|340 GroupNonUniformInverseBallot TRii
341 GroupNonUniformBallotBitExtract TRiii|342 GroupNonUniformBallotBitCount TRili
343 GroupNonUniformBallotFindLSB TRii|344 GroupNonUniformBallotFindMSB TRii|345 GroupNonUniformShuffle TRiii
346 GroupNonUniformShuffleXor TRiii|349 GroupNonUniformIAdd TRiliI|350 GroupNonUniformFAdd TRiliI
351 GroupNonUniformIMul TRiliI|352 GroupNonUniformFMul TRiliI|353 GroupNonUniformSMin TRiliI
354 GroupNonUniformUMin TRiliI|355 GroupNonUniformFMin TRiliI|356 GroupNonUniformSMax TRiliI
357 GroupNonUniformUMax TRiliI|358 GroupNonUniformFMax TRiliI|359 GroupNonUniformBitwiseAnd TRiliI
360 GroupNonUniformBitwiseOr TRiliI|361 GroupNonUniformBitwiseXor TRiliI|362 GroupNonUniformLogicalAnd TRiliI
363 GroupNonUniformLogicalOr TRiliI|364 GroupNonUniformLogicalXor TRiliI
365 GroupNonUniformQuadBroadcast TRiii|400 CopyLogical TRi
4456 TypeCooperativeMatrixKHR Riiiii|4457 CooperativeMatrixLoadKHR TRiiL|4458 CooperativeMatrixStoreKHR iiiL
4459 CooperativeMatrixMulAddKHR TRiiiL|4460 CooperativeMatrixLengthKHR TRi|5614 AtomicFMinEXT TRiiii
5615 AtomicFMaxEXT TRiiii|6035 AtomicFAddEXT TRiiii
"""


def _ops() -> dict[int, Opcode]:
    table: dict[int, Opcode] = {}
    for entry in _TABLE.strip().replace("\n", "|").split("|"):
        number, name, layout = entry.split()
        table[int(number)] = Opcode(int(number), name, layout.strip("-"))
    return table


OPS: Final = _ops()

CAPABILITIES: Final = {
    1: "Shader", 9: "Float16", 10: "Float64", 11: "Int64", 12: "Int64Atomics", 22: "Int16", 39: "Int8",
    61: "GroupNonUniform", 62: "GroupNonUniformVote", 63: "GroupNonUniformArithmetic", 64: "GroupNonUniformBallot",
    65: "GroupNonUniformShuffle", 68: "GroupNonUniformQuad", 4433: "StorageBuffer16BitAccess",
    4434: "UniformAndStorageBuffer16BitAccess", 4448: "StorageBuffer8BitAccess",
    4449: "UniformAndStorageBuffer8BitAccess", 4466: "SignedZeroInfNanPreserve", 4467: "RoundingModeRTE",
    5345: "VulkanMemoryModel", 5346: "VulkanMemoryModelDeviceScope",
    6022: "CooperativeMatrixKHR", 6033: "AtomicFloat32AddEXT", 6034: "AtomicFloat64AddEXT",
}  # fmt: skip

BUILTINS: Final = {
    24: "NumWorkgroups", 25: "WorkgroupSize", 26: "WorkgroupId", 27: "LocalInvocationId", 28: "GlobalInvocationId",
    29: "LocalInvocationIndex", 36: "SubgroupSize", 38: "NumSubgroups", 40: "SubgroupId",
    41: "SubgroupLocalInvocationId",
}  # fmt: skip
