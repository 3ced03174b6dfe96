"""A program in words and as a drawing: its steps, the memory that they read and write, the barriers between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from dashi.errors import ClosedError
from dashi.runtime._binding import Step
from dashi.runtime.array import Array

if TYPE_CHECKING:
    from dashi.runtime._program import Program


@dataclass(frozen=True)
class StepText:
    """One step: its kernel and variant, names of what it reads and writes, and the barriers before its dispatches and
    between them."""

    kernel: str
    variant: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    barriers: int


@dataclass(frozen=True)
class Description:
    """A program, to be printed (`str`), shown in a notebook, or drawn (`dot`, the language of Graphviz). Memory is
    called b0, b1, ... in the order in which steps use it; `b1+64` is a part of it that begins at byte 64."""

    title: str
    steps: tuple[StepText, ...]
    memory: tuple[tuple[str, str], ...]
    fetches: tuple[str, ...]
    feeds: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [self.title]
        lines += [f"  {name}: {text}" for name, text in self.memory]
        width = max((len(f"{step.kernel} {step.variant}") for step in self.steps), default=0)
        for i, step in enumerate(self.steps):
            if step.barriers:
                lines.append("  ---- barrier ----" if step.barriers == 1 else f"  ---- {step.barriers} barriers ----")
            name = f"{step.kernel} {step.variant}".ljust(width)
            lines.append(f"  {i:3} {name}  {', '.join(step.reads) or '-'} -> {', '.join(step.writes) or '-'}")
        if self.feeds:
            lines.append(f"  from the host: {', '.join(self.feeds)}")
        if self.fetches:
            lines.append(f"  to the host: {', '.join(self.fetches)}")
        return "\n".join(lines)

    def dot(self) -> str:
        """The program as a graph: boxes are steps, ellipses memory, dashed lines barriers."""
        lines = ["digraph program {", f"  label={_quoted(self.title)};", "  node [shape=ellipse];"]
        lines += [f"  {_quoted(name)} [label={_quoted(f'{name}: {text}')}];" for name, text in self.memory]
        for i, step in enumerate(self.steps):
            lines.append(f"  s{i} [shape=box, label={_quoted(f'{i} {step.kernel} {step.variant}')}];")
            lines += [f"  {_quoted(_whole(name))} -> s{i};" for name in step.reads]
            lines += [f"  s{i} -> {_quoted(_whole(name))};" for name in step.writes]
            if step.barriers and i:
                lines.append(f'  s{i - 1} -> s{i} [style=dashed, label="barrier"];')
        return "\n".join([*lines, "}"])

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _whole(name: str) -> str:
    return name.partition("+")[0]


class _Names:
    """Names for pieces of memory, in the order in which they are asked for."""

    def __init__(self) -> None:
        self.memory: dict[int, tuple[str, str]] = {}

    def of(self, array: Array) -> str:
        root = _memory_of(array)
        name, _ = self.memory.setdefault(root, (f"b{len(self.memory)}", f"{array.dtype.name} {array.shape}"))
        return f"{name}+{array.offset}" if array.offset else name


def _memory_of(array: Array) -> int:
    """A number for the memory that an array is in, the same for all of its parts."""
    try:
        storage: Any = array.storage
    except ClosedError:
        return id(array)
    if hasattr(storage, "place"):
        return id(storage.place[0])
    if hasattr(storage, "key"):
        return storage.key
    return id(storage if storage.base is None else storage.base)


def describe(program: Program, barriers: Sequence[int]) -> Description:
    """The program, with the barriers before each step, or within it."""
    names = _Names()
    rows: list[StepText] = []
    for step, placed in zip(program.steps, barriers, strict=True):
        reads, writes = (tuple(map(names.of, arrays)) for arrays in (step.inputs, step.outputs))
        variant = step.call.dtype.name if isinstance(step, Step) else ""
        rows.append(StepText(step.name, variant, reads, writes, placed))
    feeds, fetches = (
        tuple(_ways(names, *arrays))
        for arrays in ((program.feeds, program.copied_feeds), (program.fetches, program.copied_fetches))
    )
    title = (
        f"program {program.label!r} on {program.device.info.spec}, {program.queue}: {len(rows)} steps, "
        f"{program.dispatches} dispatches, {program.barriers} barriers"
    )
    return Description(title, tuple(rows), tuple(names.memory.values()), fetches, feeds)


def _ways(names: _Names, arrays: Sequence[Array], copied: Sequence[str] | None) -> Iterator[str]:
    """The names of arrays; of a direct program, with where kernels use them, or why they are copied."""
    for i, array in enumerate(arrays):
        way = "" if copied is None else f" (copied: {copied[i]})" if copied[i] else " (in the slot)"
        yield names.of(array) + way
