"""What a kernel is: its operands, its shaders, how it is dispatched, its reference, its cost and its cases.

A kernel folder holds `kernel.comp` (GLSL, no declarations: they are generated from here) and `kernel.py`, which
defines one `KERNEL = Kernel(...)`. Nothing here knows of devices: a plan is made from shapes and limits alone.

For authors, in short (`dashi kernels new NAME` writes a folder to start from; `patterns` has ready plans):

- In the GLSL, buffers, push constants and specialisation constants are global names; `T` is the variant's type, `W`
  the word as wide. Shared files come in by `Shader.includes` or `#include "portable.glsl"`.
- Inputs are never written. Outputs and scratch start with unknown content. An output's dimensions are those of inputs,
  numbers, or integer scalars of the same name. A call of no elements may plan no dispatches.
- A loop's stride is a push constant: `gl_NumWorkGroups` is refused, since large dispatches are split.
- Scalars reach `plan` and `reference` rounded to their type already. A reference may overflow: NumPy does not warn.
- Portable: `canon` every load and store, `mul` for products, plain + and -, no division nor GLSL functions (the build
  refuses them); the reference does the same with `dashi.kernels.portable`, and must give the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

import numpy as np

from dashi.errors import AbiError, LimitError
from dashi.types import DTYPES, Cost, DType, HostArray, Shape

Access = Literal["read", "write", "readwrite"]
Evidence = Literal["tests", "first use", "none"]
Number = int | float
Groups = tuple[int, int, int]
Fill = Callable[[np.random.Generator, Shape], HostArray]
"""Makes one input of a test case (index lists, offsets, ...)."""
ShapeRule = Callable[[Mapping[str, Shape], Mapping[str, Number]], Sequence[Shape]]
"""From the shapes of the inputs (of their views, where they have one) and the scalars to the shapes of the outputs; a
ShapeError where they do not fit."""


@dataclass(frozen=True)
class View:
    """Elements of an array, whatever its own shape: element (i, j, ...) of the view is the flat element
    `offset` + i `strides[0]` + j `strides[1]` + ... of the array. Strides count elements, and may be 0 or negative."""

    shape: Shape
    strides: tuple[int, ...]
    offset: int = 0

    def bounds(self) -> tuple[int, int]:
        """The lowest and the highest flat element that it names; (0, -1) where it names none."""
        if math.prod(self.shape) == 0:
            return 0, -1
        reach = [(length - 1) * stride for length, stride in zip(self.shape, self.strides, strict=True)]
        return self.offset + sum(r for r in reach if r < 0), self.offset + sum(r for r in reach if r > 0)


@dataclass(frozen=True)
class Operand:
    """An array that a kernel reads or makes.

    `dtype` is a short name ("f32", "u32"), or "T": the type of the variant. `shape` names its dimensions
    (("k", "n")); the same name means the same length everywhere in the call. `shape=None` means: any shape, the same
    for all such operands; its number of elements is the dimension "size". "n/32" is the number of parts of 32 that n
    is cut into, the last perhaps short; n is a dimension of an earlier operand, or an integer scalar. An input of any
    shape may be read through a `view`, whose shape then counts instead of the array's.
    """

    name: str
    dtype: str = "T"
    shape: tuple[str | int, ...] | None = None
    view: View | None = None


@dataclass(frozen=True)
class Scalar:
    """A number passed by value: a parameter of the call, or a push constant of a shader."""

    name: str
    dtype: str = "T"
    default: Number | None = None
    doc: str = ""


@dataclass(frozen=True)
class Binding:
    """One storage buffer of a shader; its index in `Shader.buffers` is its binding. `dtype` may also be "W", the
    integer word as wide as T, for kernels that move bits without looking at them; or "V": 16 bytes of T
    as one vector, for buffers whose size is a multiple of that; or "P": two of T, a complex number; or "u32x4":
    the buffer as vectors of words. "u32" and "u32x4" read any buffer, and write those of one or two bytes an element:
    the last word or vector may reach past the end of the array, into bytes that exist, but mean nothing.

    A shader writes every element of a buffer that it only writes (`access="write"`), or the kernel's other dispatches
    write the rest; one that leaves elements as they were says "readwrite"."""

    name: str
    dtype: str = "T"
    access: Access = "read"


@dataclass(frozen=True)
class Spec:
    """A specialisation constant (u32); its index in `Shader.spec` is its id."""

    name: str
    default: int


@dataclass(frozen=True)
class Shader:
    """One compute shader of the kernel: GLSL `file` plus the interface that its declarations are generated from.

    `local` is the workgroup size; an entry may name a specialisation constant. `features` are needed on top of those
    that the dtype implies. `includes` are files of `_include/` placed before the shader's own text. `extensions` are
    GLSL extensions that ask nothing of a device. A shader that needs more shared memory than every device has says so
    in `shared_bytes`; its plan must ask the limits first.
    """

    buffers: tuple[Binding, ...]
    push: tuple[Scalar, ...] = ()
    spec: tuple[Spec, ...] = ()
    local: tuple[int | str, int | str, int | str] = (256, 1, 1)
    file: str = "kernel.comp"
    includes: tuple[str, ...] = ()
    features: frozenset[str] = frozenset()
    extensions: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    """The variants that it serves, if not all of the kernel's."""
    prelude: str = ""
    """GLSL that a pattern generates, placed between the declarations and the includes."""
    text: str = ""
    """GLSL of a kernel without a folder, placed between the includes and the file; with it `file` may be empty."""
    shared_bytes: int = 32768
    contracted: bool = True
    """In a kernel that is not portable: the driver may contract and reorder. False where portable functions are used
    beside explicit fma: their steps are exact only as they are written."""


@dataclass(frozen=True)
class Limits:
    """What a plan must respect. The defaults are what Vulkan guarantees, so they fit any device."""

    groups: int = 65535
    """Workgroups along x, the axis that plans use for size; along y and z every device has 65,535."""
    invocations: int = 128
    shared_bytes: int = 16384
    storage_range: int = 1 << 27
    storage_buffers: int = 4
    """Buffers that a shader may bind. Every driver that was tried offers far more than this."""
    push_bytes: int = 128
    offset_alignment: int = 256
    loop_trips: int = 65000
    """Loop iterations that one invocation may make in a dispatch, all its loops together."""
    resident: int = 0
    """Workgroups that are known to be on the device at the same time, as kernels need whose workgroups wait for each
    other; 0 where that was not tried, or is not so."""
    subgroup: int = 0
    """Invocations of a subgroup; 0 where it is not known."""
    software: bool = False
    """The device is the host's own processor: few wide cores, and caches instead of fast shared memory."""
    features: frozenset[str] = frozenset()
    """What the device offers, so that `Kernel.prefer` can choose a tuning whose shaders need more than others."""


@dataclass(frozen=True)
class Call:
    """One use of a kernel: the variant, the dimensions, the scalars, and the limits to stay within."""

    dtype: DType
    shapes: Mapping[str, Shape]
    dims: Mapping[str, int]
    scalars: Mapping[str, Number]
    limits: Limits = field(default_factory=Limits)
    tuning: Mapping[str, int] = field(default_factory=dict[str, int])
    """The numbers of the tuning that the device chose among `Kernel.tunings`."""

    def size(self, operand: str) -> int:
        """Number of elements of an operand."""
        return math.prod(self.shapes[operand])

    def bytes(self, *operands: str) -> int:
        """Bytes of operands of the variant's type."""
        return sum(self.size(o) for o in operands) * self.dtype.size


@dataclass(frozen=True)
class Dispatch:
    """One dispatch: which shader, on which operands or scratch buffers (in binding order), with which numbers.

    `trips` is the most loop iterations that one invocation makes, all loops together: some drivers end longer loops
    silently (lavapipe 22.3.6 after 65,535), so the house refuses a dispatch above the device's limit. A loop that is
    [[unroll]]ed from a number to a constant is none. tests/conformance counts them.
    """

    shader: str
    buffers: tuple[str, ...]
    push: Mapping[str, Number]
    groups: Groups
    trips: int = 1
    spec: Mapping[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True)
class Plan:
    """How a call is carried out: dispatches in order, and the scratch buffers (dtype, elements) between them."""

    dispatches: tuple[Dispatch, ...]
    scratch: Mapping[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])


@dataclass(frozen=True)
class Case:
    """One test and benchmark case: the shapes of the inputs and the scalars. Float inputs are filled by the harness
    with each of its distributions; `fill` makes the others."""

    shapes: Mapping[str, Shape]
    scalars: Mapping[str, Number] = field(default_factory=dict[str, Number])
    fill: Mapping[str, Fill] = field(default_factory=dict[str, Fill])


@dataclass(frozen=True)
class StreamDefaults:
    """How the stream scheduler treats the kernel unless a config says otherwise (stream annotations). OBSERVER: a
    kernel that looks at states and whose results no chain goes on from (`reduce_*`, hashes, counts, pictures)."""

    depth_in: int = 0
    depth_out: int = 0
    latency_sensitive: bool = False
    io_class: Literal["CORE", "PQ", "OBSERVER", "IO"] = "CORE"
    migratable: bool = True


class Binaries(Protocol):
    """Where the SPIR-V of a kernel without a folder comes from: emitted from templates, or compiled from text."""

    @property
    def key(self) -> str:
        """Digest of what the binaries are made from: two kernels with one key have the same."""
        ...

    def words(self, shader: str, variant: str) -> bytes:
        """The SPIR-V of a variant; whoever asks for it checks it."""
        ...


class Variables(Protocol):
    """The type variables of a kernel beside T."""

    def kernel(self, name: str, dtypes: Mapping[str, str]) -> Kernel:
        """The kernel for inputs of these element types, by operand; `name` is what errors call it."""
        ...


class Checker(Protocol):
    """A device, as far as a kernel knows one."""

    def check(self, kernel: Kernel) -> None:
        """Compares what it computes with the kernel's reference."""
        ...


@dataclass(frozen=True, repr=False)
class Kernel:
    """A pure function over buffers: device-agnostic, stateless, explicit about its inputs and outputs.

    - `reference(*inputs, **scalars)` returns the output (or a tuple of them) from NumPy arrays.
    - `plan(call)` returns the dispatches; `cost(call)` the counted work.
    - `portable`: the same bits on NumPy, software Vulkan and hardware. Otherwise `bound` is the largest relative L2
      error against the reference evaluated in higher precision.
    - `tier`: 0 fixed order; 2 float atomics.
    - `cases` are tested and benchmarked; `bench` holds the large ones that are benchmarked only.
    - `tunings`: named sets of numbers (tile sizes and the like) that `plan` finds in `call.tuning`. They may change
      speed, never bits. The first is the default; `prefer(limits, variant)` may name another for a device. A plan
      raises a `LimitError` for one that the limits do not allow; a device needs the features of the shaders that a
      plan dispatches, not those of all.
    - `in_place`: outputs may be the same buffer as an input (element i depends on element i alone).
    - `broadcasts`: inputs of any shape are stretched to one, by NumPy's rules; outputs have that shape.
    - `reduces`: outputs of any shape have the inputs' shape without these axes; negative ones count from the last.
    - `shape_rule`: the shapes of the outputs, where inputs of any shape need not have the same one.
    - `binaries`: where its SPIR-V comes from, if it does not lie in its folder.
    - `evidence`: how it is known that devices give the reference's bits: by the tests of whoever brings it; by a
      check that a device makes before it first runs it; or not at all, since there is no reference.
    - `variables`: type variables beside T; the operands have the first choice of each, and kernels for other types
      stand in for it where arrays have those.
    """

    summary: str
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    shaders: Mapping[str, Shader]
    plan: Callable[[Call], Plan]
    reference: Callable[..., HostArray | tuple[HostArray, ...]]
    cost: Callable[[Call], Cost]
    cases: tuple[Case, ...]
    bench: tuple[Case, ...] = ()
    scalars: tuple[Scalar, ...] = ()
    dtypes: tuple[str, ...] = ("f32", "f64")
    portable: bool = True
    bound: float | None = None
    tier: int = 0
    in_place: bool = False
    tunings: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, Mapping[str, int]])
    prefer: Callable[[Limits, str], str] | None = None
    aliases: tuple[str, ...] = ()
    version: int = 1
    stream: StreamDefaults = StreamDefaults()
    name: str = ""
    family: str = ""
    folder: Path = Path()
    broadcasts: bool = False
    reduces: tuple[int, ...] = ()
    shape_rule: ShapeRule | None = None
    binaries: Binaries | None = None
    evidence: Evidence = "tests"
    variables: Variables | None = None

    def __repr__(self) -> str:
        results, arrays = (", ".join(o.name for o in operands) for operands in (self.outputs, self.inputs))
        scalars = "".join(f", {s.name}=" for s in self.scalars)
        unproved = "" if self.evidence != "none" else "; unproved: it has no reference to be checked against"
        return f"<Kernel {self.name}({arrays}{scalars}) -> {results}, {' '.join(self.dtypes)}{unproved}>"

    def check(self, device: Checker) -> None:
        """Compares what a device computes with the reference, bit for bit; a TwinError names the first difference."""
        device.check(self)


def variants(kernel: Kernel, shader: Shader) -> tuple[str, ...]:
    """The variants of the kernel that a shader serves."""
    return tuple(v for v in kernel.dtypes if not shader.dtypes or v in shader.dtypes)


def part_of(dimension: str) -> tuple[str, int]:
    """What a dimension is made of: ("n", 32) for "n/32", ("n", 1) for "n"."""
    name, _, parts = dimension.partition("/")
    return name, int(parts or 1)


def features(kernel: Kernel, shader: Shader, variant: str) -> frozenset[str]:
    """Device features that a shader variant needs: those of the types it computes with. Words are moved, not used."""
    named = {b.dtype for b in shader.buffers} | {p.dtype for p in shader.push}
    used = (named - {"T", "W", "V", "P", "u32x4"}) | ({variant} if named & {"T", "V", "P"} else set[str]())
    return shader.features.union(*(DTYPES[name].features for name in used))


def variant_features(kernel: Kernel, variant: str) -> frozenset[str]:
    """Device features that the shaders of a variant need, all together."""
    serving = (s for s in kernel.shaders.values() if variant in variants(kernel, s))
    return frozenset[str]().union(*(features(kernel, shader, variant) for shader in serving))


def plan_features(kernel: Kernel, plan: Plan, variant: str) -> frozenset[str]:
    """Device features that a plan needs: those of the shaders that it dispatches."""
    used = {dispatch.shader for dispatch in plan.dispatches}
    return frozenset[str]().union(*(features(kernel, kernel.shaders[name], variant) for name in used))


def within_trips(name: str, dispatch: Dispatch, limits: Limits) -> Dispatch:
    """The dispatch itself, if its declared loops fit the device; an error that says so if they do not."""
    if dispatch.trips > limits.loop_trips:
        raise LimitError(
            f"kernel {name!r} would loop {dispatch.trips} times in one invocation; "
            f"this device is only right up to {limits.loop_trips}.",
            "split the work into smaller calls.",
        )
    return dispatch


def pack(push: Sequence[Scalar], values: Mapping[str, Number], variant: DType) -> bytes:
    """Push constants as bytes, each aligned to its own size (the layout that `glsl.declarations` writes)."""
    data = bytearray()
    for scalar in push:
        kind = variant if scalar.dtype == "T" else DTYPES[scalar.dtype]
        data += bytes(-len(data) % kind.size)
        if scalar.name not in values:
            raise AbiError(f"push constant {scalar.name!r} has no value.", "name it in the dispatch's `push`.")
        data += np.asarray(values[scalar.name], dtype=kind.numpy).tobytes()
    return bytes(data)
