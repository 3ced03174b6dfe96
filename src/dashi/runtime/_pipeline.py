"""Compute pipelines: made once per binary and specialisation, with a cache on disk, and their descriptor sets."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from dashi._cache import cache_folder, read_cache, write_cache
from dashi.kernels._build import Binary
from dashi.runtime._vk_descriptors import SetAllocation, SetWriter
from dashi.runtime._vk_device import PIPELINE_OBJECT, RawDevice, RawPipeline
from dashi.runtime.info import DeviceInfo

_SETS_PER_POOL: Final = 256
_BUFFERS_PER_SET: Final = 6
_MOST_THREADS: Final = 8


@dataclass(frozen=True)
class PipelineSource:
    """What a pipeline is made from: a binary, the numbers of its interface and its specialisation. `origin` says where
    the kernel's binaries come from, and `name` is what profilers and validation layers show."""

    name: str
    origin: str
    shader: str
    variant: str
    binary: Binary
    buffers: int
    push_bytes: int
    spec: tuple[int, ...]
    full_subgroups: bool

    @property
    def key(self) -> tuple[str, tuple[int, ...]]:
        """Sources of one key make one pipeline."""
        return self.binary.digest, self.spec


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
        self._allocation = SetAllocation(raw)
        self._writers: dict[int, SetWriter] = {}

    def make(self, pipeline: RawPipeline, ranges: Sequence[tuple[int, int, int]]) -> PoolSet:
        """A set whose binding i is ranges[i] = (buffer, offset, bytes)."""
        needed = len(ranges)
        with self._lock:
            pool = next((p for p, (sets, buffers) in self._room.items() if sets and buffers >= needed), None)
            if pool is None:
                buffers = max(needed, _SETS_PER_POOL * _BUFFERS_PER_SET)
                pool = self._raw.create_descriptor_pool(_SETS_PER_POOL, buffers)
                self._room[pool] = [_SETS_PER_POOL, buffers]
            descriptor_set = PoolSet(self._allocation.allocate(pool, pipeline.set_layout), pool)
            self._room[pool][0] -= 1
            self._room[pool][1] -= needed
            self._writer(needed).write(descriptor_set.handle, ranges)
        return descriptor_set

    def _writer(self, buffers: int) -> SetWriter:
        if buffers not in self._writers:
            self._writers[buffers] = SetWriter(self._raw, buffers)
        return self._writers[buffers]

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
        self.generation = 0
        """How often pipelines were destroyed: those of an earlier generation are gone."""
        self._pipelines: dict[tuple[str, tuple[int, ...]], Future[RawPipeline]] = {}
        self._file = cache_folder() / "pipelines" / f"{info.vendor_id:x}-{info.device_id:x}-{info.uuid}.bin"
        self._start = read_cache(self._file)
        self._cache = raw.create_pipeline_cache(self._start)

    def get(self, source: PipelineSource) -> RawPipeline:
        """The pipeline of a source, made at most once."""
        while True:
            promised, claimed = self._claim(source)
            if claimed:
                self._make(source, promised)
            elif promised.exception() is not None:  # somebody else's try: the next is this caller's
                continue
            return promised.result()

    def prepare(self, sources: Sequence[PipelineSource]) -> None:
        """Begins to make the pipelines of some sources, on threads of its own: whoever gets one waits for it."""
        claims = [(source, *self._claim(source)) for source in sources]
        missing = [(source, promised) for source, promised, claimed in claims if claimed]
        if missing:
            pool = ThreadPoolExecutor(min(_MOST_THREADS, os.cpu_count() or 1, len(missing)), "dashi-pipelines")
            for source, promised in missing:
                pool.submit(self._make, source, promised)
            pool.shutdown(wait=False)

    def _claim(self, source: PipelineSource) -> tuple[Future[RawPipeline], bool]:
        """Where the pipeline of a source is, or will be; and whether the caller is to make it."""
        with self._lock:
            known = self._pipelines.get(source.key)
            if known is not None and not (known.done() and known.exception()):
                return known, False
            promised = self._pipelines[source.key] = Future[RawPipeline]()
            return promised, True

    def _make(self, source: PipelineSource, promised: Future[RawPipeline]) -> None:
        try:
            pipeline = self._raw.create_pipeline(
                source.binary.words,
                source.buffers,
                source.push_bytes,
                source.spec,
                self._cache,
                full_subgroups=source.full_subgroups,
            )
            self._raw.set_name(PIPELINE_OBJECT, pipeline.pipeline, source.name)
        except BaseException as error:  # whoever asks for the pipeline gets the error
            promised.set_exception(error)
        else:
            promised.set_result(pipeline)

    def clear(self) -> None:
        """Destroys all pipelines; nothing may be using them."""
        with self._lock:
            self._destroy_pipelines()
            # SwiftShader keeps the code of every pipeline ever made as long as the cache it was made with lives.
            old, self._cache = self._cache, self._raw.create_pipeline_cache(self._raw.pipeline_cache_data(self._cache))
            self._raw.destroy("PipelineCache", old)

    def _destroy_pipelines(self) -> None:
        self.generation += 1
        # Asking for the error of one waits for the thread that makes it.
        for pipeline in [promised.result() for promised in self._pipelines.values() if promised.exception() is None]:
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
