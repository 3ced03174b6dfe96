"""Dispatches made ready for a Vulkan device: everything about them but the arrays, made once for each plan."""

from __future__ import annotations

import math
import threading
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dashi.errors import LimitError
from dashi.kernels.abi import Call, Dispatch, Groups, Kernel, Plan, Shader, features, pack
from dashi.runtime._pipeline import PipelineSource
from dashi.runtime._vk_device import RawPipeline
from dashi.runtime._vk_record import push_buffer

if TYPE_CHECKING:
    from dashi.runtime._vulkan_device import VulkanDevice

_MOST: Final = 4096


class Prepared(NamedTuple):
    """A dispatch without its arrays. `reads` and `writes` are numbers of its bindings."""

    pipeline: RawPipeline
    push: Any
    push_size: int
    groups: Groups
    pieces: tuple[tuple[Groups, Groups], ...]
    work: int
    buffers: tuple[str, ...]
    reads: tuple[int, ...]
    writes: tuple[int, ...]


class _Entry(NamedTuple):
    plan: Plan
    generation: int
    budget: int
    dispatches: tuple[Prepared, ...]


class Preparation:
    """Prepared dispatches of a device, by the identity of their plan; thread-safe."""

    def __init__(self, device: VulkanDevice) -> None:
        self._device = device
        self._entries: dict[int, _Entry] = {}
        self._lock = threading.Lock()

    def dispatches(self, kernel: Kernel, call: Call, plan: Plan) -> tuple[Prepared, ...]:
        """A plan's dispatches, with pipelines that are still there."""
        generation, budget = self._device.pipelines.generation, self._device.work_per_dispatch
        entry = self._entries.get(id(plan))
        # An entry keeps its plan, so that no other can have its identity.
        if entry is not None and entry.generation == generation and entry.budget == budget:
            return entry.dispatches
        prepared = tuple([_prepare(self._device, kernel, call, dispatch) for dispatch in plan.dispatches])
        with self._lock:
            if len(self._entries) >= _MOST:
                self._entries.clear()
            self._entries[id(plan)] = _Entry(plan, generation, budget, prepared)
        return prepared


def pipeline_source(device: VulkanDevice, kernel: Kernel, call: Call, dispatch: Dispatch) -> PipelineSource:
    """What the pipeline of a dispatch is made from."""
    shader = kernel.shaders[dispatch.shader]
    return PipelineSource(
        kernel.name,
        origin_of(kernel),
        dispatch.shader,
        call.dtype.name,
        device.binary(kernel, dispatch.shader, call.dtype.name),
        len(shader.buffers),
        len(pack(shader.push, dispatch.push, call.dtype)),
        tuple(dispatch.spec.get(s.name, s.default) for s in shader.spec),
        "subgroup_quad" in features(kernel, shader, call.dtype.name),
    )


def origin_of(kernel: Kernel) -> str:
    """Where the binaries of a kernel come from: what they are generated from, or a folder."""
    return kernel.binaries.key if kernel.binaries else str(kernel.folder)


def _prepare(device: VulkanDevice, kernel: Kernel, call: Call, dispatch: Dispatch) -> Prepared:
    shader = kernel.shaders[dispatch.shader]
    if len(shader.buffers) > device.limits.storage_buffers:
        raise LimitError(
            f"kernel {kernel.name!r} binds {len(shader.buffers)} buffers; {device.info.name!r} allows "
            f"{device.limits.storage_buffers}.",
            "split it into kernels of fewer arrays, or choose another device, for instance cpu.",
        )
    source = pipeline_source(device, kernel, call, dispatch)
    work = math.prod(dispatch.groups) * _invocations(device, kernel, shader, source.spec) * dispatch.trips
    push = pack(shader.push, dispatch.push, call.dtype)
    pipeline = device.pipelines.get(source)
    access = [binding.access for binding in shader.buffers]
    return Prepared(
        pipeline,
        push_buffer(push) if push else None,
        len(push),
        dispatch.groups,
        split(dispatch.groups, work, device.work_per_dispatch),
        work,
        dispatch.buffers,
        tuple(i for i, how in enumerate(access) if how != "write"),
        tuple(i for i, how in enumerate(access) if how != "read"),
    )


def _invocations(device: VulkanDevice, kernel: Kernel, shader: Shader, spec: tuple[int, ...]) -> int:
    values = {s.name: v for s, v in zip(shader.spec, spec, strict=True)}
    total = math.prod(values[n] if isinstance(n, str) else n for n in shader.local)
    if total > device.limits.invocations:
        raise LimitError(
            f"kernel {kernel.name!r} has workgroups of {total} invocations; {device.info.name!r} allows "
            f"{device.limits.invocations}.",
            "choose another device, for instance cpu.",
        )
    return total


def split(groups: Groups, work: int, budget: int) -> tuple[tuple[Groups, Groups], ...]:
    """Cuts a dispatch along its longest axis into (base, count) pieces of at most `budget` work; none if it fits."""
    pieces = min(-(-work // budget), max(groups))
    if pieces <= 1:
        return ()
    axis = groups.index(max(groups))
    size = -(-groups[axis] // pieces)
    cut: list[tuple[Groups, Groups]] = []
    for start in range(0, groups[axis], size):
        base, count = [0, 0, 0], list(groups)
        base[axis], count[axis] = start, min(size, groups[axis] - start)
        cut.append(((base[0], base[1], base[2]), (count[0], count[1], count[2])))
    return tuple(cut)
