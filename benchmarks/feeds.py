"""What a run costs that values are fed to and fetched from, and what its parts would cost at the least.

    python benchmarks/feeds.py --device auto --bytes 65536

For each pair of memory types (`-` is an array's own memory), a kernel of one input and one output is bound to memory
of those types and run: microseconds to fill the input from the host, to submit, to wait, to copy the output to the
host, and all together beside the same kernel on arrays. Each line is the median of many runs; the pairs take turns.
`device.program(feed=..., fetch=...)` stands below them, with its own parts.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Final

import numpy as np

import dashi
from dashi.runtime import Array
from dashi.runtime._buffer import Buffer
from dashi.runtime._memory import Allocation, Allocator, Use
from dashi.runtime._staging import synchronise
from dashi.runtime._transfers import host_view
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.types import HostArray

Parts = dict[str, float]
CLOCK: Final = time.perf_counter_ns


class _OneType(Allocator):
    """Memory of one type, from a device's allocator."""

    def __init__(self, inner: Allocator, number: int) -> None:
        self._inner, self._number = inner, number

    def allocate(self, size: int, alignment: int, allowed: int, use: Use) -> Allocation:
        return self._inner.allocate(size, alignment, allowed & 1 << self._number, use)

    def free(self, allocation: Allocation) -> None:
        self._inner.free(allocation)


def array_in(device: VulkanDevice, number: int | None, count: int) -> tuple[Array, HostArray | None]:
    """An array in memory of a type, and how the host sees it; without a number, in the device's own choice."""
    if number is None:
        return device.empty(count), None
    allocator = _OneType(device.allocator, number)
    buffer = Buffer(device.raw, allocator, device.graveyard, 4 * count, "upload")
    return Array(device, (count,), dashi.types.dtype("f32"), buffer), host_view(buffer).view(np.float32)


def holds_buffers(device: VulkanDevice, number: int) -> bool:
    """Whether memory of a type can hold storage buffers."""
    handle, _, _, allowed = device.raw.create_buffer(16)
    device.raw.destroy("Buffer", handle)
    return bool(allowed >> number & 1)


def type_text(device: VulkanDevice, number: int | None) -> str:
    if number is None:
        return "-"
    kind = device.info.memory_types[number]
    marks = [
        name
        for name, has in (
            ("local", kind.device_local),
            ("coherent", kind.host_coherent),
            ("cached", kind.host_cached),
        )
        if has
    ]
    return f"{number}:{'+'.join(marks) or 'visible'}"


def in_types(device: VulkanDevice, first: int | None, second: int | None, count: int) -> Callable[[], Parts]:
    """One run of a kernel whose input and output are in memory of the two types."""
    (x, filled), (y, read) = array_in(device, first, count), array_in(device, second, count)
    values, out = np.ones(count, np.float32), np.empty(count, np.float32)
    x.write(values)
    program = device.program([device.bind("scale", x, out=y, a=2.0)])

    def turn() -> Parts:
        times = [CLOCK()]
        if filled is not None:
            filled[...] = values
            synchronise(device.raw, x.storage, flush=True)
        times.append(CLOCK())
        ticket = program.submit()
        times.append(CLOCK())
        ticket.wait()
        times.append(CLOCK())
        if read is not None:
            synchronise(device.raw, y.storage, flush=False)
            np.copyto(out, read)
        times.append(CLOCK())
        return _parts(("fill", "submit", "wait", "read"), times)

    return turn


def fed_program(device: VulkanDevice, count: int, *, direct: bool) -> Callable[[], Parts]:
    """A run of a program that is fed and fetched, by its kernel or by copies."""
    x, y = device.empty(count), device.empty(count)
    values, out = np.ones(count, np.float32), np.empty(count, np.float32)
    program = device.program([device.bind("scale", x, out=y, a=2.0)], feed=[x], fetch=[y], direct=direct)

    def turn() -> Parts:
        times = [CLOCK()]
        slot = program.slot()
        times.append(CLOCK())
        slot[x][...] = values
        times.append(CLOCK())
        ticket = slot.submit()
        times.append(CLOCK())
        ticket.fetched(y, out=out)
        times.append(CLOCK())
        return _parts(("slot", "fill", "submit", "wait and read"), times)

    return turn


def _parts(names: tuple[str, ...], times: list[int]) -> Parts:
    took = {name: (end - start) / 1000 for name, (start, end) in zip(names, pairwise(times), strict=True)}
    return took | {"all": (times[-1] - times[0]) / 1000}


def measure(turns: dict[str, Callable[[], Parts]], rounds: int, runs: int) -> dict[str, Parts]:
    """The median of each part; the measures take turns, so that a change of the machine's speed hits all alike."""
    taken: dict[str, list[Parts]] = {name: [] for name in turns}
    for _ in range(rounds):
        for name, turn in turns.items():
            for _ in range(runs // 10):
                turn()
            taken[name] += [turn() for _ in range(runs)]
    return {
        name: {part: statistics.median(one[part] for one in parts) for part in parts[0]}
        for name, parts in taken.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--bytes", type=int, default=1 << 16)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--runs", type=int, default=200)
    words = parser.parse_args()
    count = words.bytes // 4
    with dashi.open(words.device, validation=False) as device:
        if not isinstance(device, VulkanDevice):
            raise SystemExit(f"{device.info.name} is no Vulkan device")
        # Of several types with the same properties the first stands for all.
        kinds = device.info.memory_types
        visible = [i for i, kind in enumerate(kinds) if kind.host_visible and kinds.index(kind) == i]
        visible = [i for i in visible if holds_buffers(device, i)]
        # The host reads the device's own memory, past its caches, at 60 MB/s: seen once, and left out.
        read = [i for i in visible if kinds[i].host_cached or not kinds[i].device_local]
        pairs = [(None, None), *((i, None) for i in visible), *((None, i) for i in read)]
        pairs += [(i, j) for i in visible for j in read]
        turns = {f"{type_text(device, i)} -> {type_text(device, j)}": in_types(device, i, j, count) for i, j in pairs}
        alone = next(iter(turns))
        turns["fed and fetched, by copies"] = fed_program(device, count, direct=False)
        turns["fed and fetched, direct"] = fed_program(device, count, direct=True)
        print(f"{device.info.name}: {words.bytes} bytes in and out, microseconds (median), ratio to the kernel alone")
        measured = measure(turns, words.rounds, words.runs)
        plain = measured[alone]["all"]
        for name, parts in measured.items():
            cells = "  ".join(f"{part} {took:6.1f}" for part, took in parts.items())
            print(f"{name:<50} {cells}  ratio {parts['all'] / plain:.2f}")


if __name__ == "__main__":
    main()
