"""Compute pipelines: made once per binary and specialisation, with a cache on disk, and their descriptor sets."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dashi._cache import cache_folder, read_cache, write_cache
from dashi.kernels._build import Binary
from dashi.runtime._vk_device import PIPELINE_OBJECT, RawDevice, RawPipeline
from dashi.runtime.info import DeviceInfo

_SETS_PER_POOL: Final = 256
_BUFFERS_PER_SET: Final = 6


@dataclass(frozen=True)
class PoolSet:
    """A descriptor set and the pool it came from."""

    handle: int
    pool: int


class DescriptorSets:
    """Descriptor sets from pools that grow as needed; thread-safe."""

    def __init__(self, raw: RawDevice) -> None:
        self._raw = raw
        self._lock = threading.Lock()
        self._room: dict[int, list[int]] = {}

    def make(self, pipeline: RawPipeline, ranges: Sequence[tuple[int, int, int]]) -> PoolSet:
        """A set whose binding i is ranges[i] = (buffer, offset, bytes)."""
        needed = len(ranges)
        with self._lock:
            pool = next((p for p, (sets, buffers) in self._room.items() if sets and buffers >= needed), None)
            if pool is None:
                buffers = max(needed, _SETS_PER_POOL * _BUFFERS_PER_SET)
                pool = self._raw.create_descriptor_pool(_SETS_PER_POOL, buffers)
                self._room[pool] = [_SETS_PER_POOL, buffers]
            descriptor_set = PoolSet(self._raw.allocate_set(pool, pipeline.set_layout), pool)
            self._room[pool][0] -= 1
            self._room[pool][1] -= needed
        self._raw.write_set(descriptor_set.handle, ranges)
        return descriptor_set

    def free(self, descriptor_set: PoolSet, buffers: int) -> None:
        with self._lock:
            self._raw.free_set(descriptor_set.pool, descriptor_set.handle)
            self._room[descriptor_set.pool][0] += 1
            self._room[descriptor_set.pool][1] += buffers

    def close(self) -> None:
        for pool in self._room:
            self._raw.destroy("DescriptorPool", pool)
        self._room.clear()


class Pipelines:
    """The pipelines of a device, by the digest of their binary and their specialisation; thread-safe."""

    def __init__(self, raw: RawDevice, info: DeviceInfo) -> None:
        self._raw = raw
        self._lock = threading.Lock()
        self._pipelines: dict[tuple[str, tuple[int, ...]], RawPipeline] = {}
        self._file = cache_folder() / "pipelines" / f"{info.vendor_id:x}-{info.device_id:x}-{info.uuid}.bin"
        self._start = read_cache(self._file)
        self._cache = raw.create_pipeline_cache(self._start)

    def get(
        self, name: str, binary: Binary, buffers: int, push_bytes: int, spec: tuple[int, ...], *, full_subgroups: bool
    ) -> RawPipeline:
        """The pipeline for a binary, made at most once; `name` is what profilers and validation layers show."""
        key = (binary.digest, spec)
        with self._lock:
            if key not in self._pipelines:
                pipeline = self._raw.create_pipeline(
                    binary.words, buffers, push_bytes, spec, self._cache, full_subgroups=full_subgroups
                )
                self._raw.set_name(PIPELINE_OBJECT, pipeline.pipeline, name)
                self._pipelines[key] = pipeline
            return self._pipelines[key]

    def clear(self) -> None:
        """Destroys all pipelines; nothing may be using them."""
        with self._lock:
            self._destroy_pipelines()
            # SwiftShader keeps the code of every pipeline ever made as long as the cache it was made with lives.
            old, self._cache = self._cache, self._raw.create_pipeline_cache(self._raw.pipeline_cache_data(self._cache))
            self._raw.destroy("PipelineCache", old)

    def _destroy_pipelines(self) -> None:
        for pipeline in self._pipelines.values():
            self._raw.destroy("Pipeline", pipeline.pipeline)
            self._raw.destroy("PipelineLayout", pipeline.layout)
            self._raw.destroy("DescriptorSetLayout", pipeline.set_layout)
        self._pipelines.clear()

    def close(self) -> None:
        """Destroys the pipelines and saves the driver's cache if it grew."""
        self._destroy_pipelines()
        data = self._raw.pipeline_cache_data(self._cache)
        if data and data != self._start:
            write_cache(self._file, data)
        self._raw.destroy("PipelineCache", self._cache)
