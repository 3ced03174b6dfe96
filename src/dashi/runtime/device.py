"""The interface that all three kinds of device share, and what they have in common.

A `Device` makes arrays, binds kernels to arrays (`Step`), and turns steps into a `Program` that can be run again and
again. Backends implement the few methods marked abstract.
"""

from __future__ import annotations

import contextlib
import math
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, SupportsIndex

import numpy as np
import numpy.typing as npt

from dashi.errors import AlignmentError, LimitError, ShapeError, UnsupportedOperationError
from dashi.kernels._arguments import require_arrays
from dashi.kernels._general import is_general
from dashi.kernels.abi import Call, Kernel, Limits, Number, Plan
from dashi.runtime._asynchronous import Asynchronous
from dashi.runtime._binding import Step as Step
from dashi.runtime._binding import as_kernel, bind
from dashi.runtime._dlpack import from_dlpack
from dashi.runtime._events import Awaited
from dashi.runtime._events import Event as Event
from dashi.runtime._failures import UntoldFailures
from dashi.runtime._gate import Gate, inside
from dashi.runtime._hazards import Range
from dashi.runtime._notebook import html_facts
from dashi.runtime._operands import require_on
from dashi.runtime._plans import PlanCache
from dashi.runtime._program import Program as Program
from dashi.runtime._program import Recording as Recording
from dashi.runtime._program import Timed as Timed
from dashi.runtime._program import Timing as Timing
from dashi.runtime._program import Waitable as Waitable
from dashi.runtime._proof import check_kernel
from dashi.runtime._recording import recording, require_steps
from dashi.runtime._scratch import Scratch as Scratch
from dashi.runtime._scratch import ScratchPool as ScratchPool
from dashi.runtime._shapes import sizes_of, whole_number
from dashi.runtime._step_making import StepMaker
from dashi.runtime._steps import AnyStep as AnyStep
from dashi.runtime._submissions import Listeners
from dashi.runtime._tuning import Memory, choose
from dashi.runtime.array import Array, host_array
from dashi.runtime.block import Block, block_size
from dashi.runtime.info import Barriers, DeviceInfo, Role
from dashi.types import DType, HostArray, Shape
from dashi.types import dtype as dtype_of

if TYPE_CHECKING:
    from dashi.runtime._pipeline import PipelineSource

LONGEST_WAIT: Final = 600.0


class Device(StepMaker, Asynchronous):
    """A place where kernels run. Use it in a `with` block: leaving closes it and frees everything that hangs off it."""

    def __init__(self, info: DeviceInfo) -> None:
        self.info = info
        self.gate = Gate(info.name)
        self._closed = False
        self._closing = threading.RLock()
        self._tunings: Memory | None = None
        self.checked: set[tuple[str, int, str]] = set()
        """Variants of kernels from text that were compared with their references here."""
        self.plans = PlanCache()
        self.listeners = Listeners()
        self.together: Callable[[], contextlib.AbstractContextManager[object]] = contextlib.nullcontext
        """`with device.together():` what this thread submits meanwhile goes to the driver in one call, at the end."""
        self.failures = UntoldFailures()
        self.awaited = Awaited()
        """The events that work or threads wait for."""
        self.timeout = LONGEST_WAIT
        """Seconds: the longest that one wait may last, unless it says otherwise."""
        self.watcher: Callable[[Program], Program] | None = None
        """What programs pass through when they are recorded: a trace notes their submissions."""

    # What backends implement

    @abstractmethod
    def _allocate(self, nbytes: int) -> Any:
        """New storage."""

    @abstractmethod
    def _part(self, storage: Any, offset: int, nbytes: int) -> Any:
        """Some of the bytes of storage, as storage."""

    @abstractmethod
    def shared(self, first: Any, other: Any) -> bool:
        """Whether two pieces of this device's storage have bytes in common."""

    @abstractmethod
    def byte_range(self, storage: Any) -> Range:
        """The bytes of a piece of storage, in hazard tracking."""

    @abstractmethod
    def ends_memory(self, storage: Any) -> bool:
        """Whether a piece of storage ends where the memory ends that it is a part of."""

    @abstractmethod
    def write(self, array: Array, values: HostArray) -> None:
        """Copies host values of the same shape and type into the array."""

    @abstractmethod
    def read(self, array: Array) -> HostArray:
        """A copy of the array's bytes (as uint8), after all work submitted so far."""

    @abstractmethod
    def lower(self, kernel: Kernel, call: Call, plan: Plan, arrays: Mapping[str, Array]) -> Any:
        """Whatever the backend needs to record the call, and the memory of its arrays, operands and scratch, which
        lives as long."""

    @abstractmethod
    def _program(self, steps: Sequence[AnyStep], label: str, options: Recording) -> Program:
        """Records steps in order."""

    def wait(self) -> None:
        """Returns when all work submitted so far is done."""
        self.require_open()

    def at_work(self) -> bool:
        """Whether work that was submitted is not done yet, so that a read would have to wait."""
        return False

    @abstractmethod
    def _close(self) -> None:
        """Frees everything."""

    # What they share

    @property
    def limits(self) -> Limits:
        """What plans must respect on this device."""
        return replace(self.info.limits, features=self.info.features, subgroup=self.info.subgroup_size)

    def probe(self) -> frozenset[str]:
        """Tries what a driver does not say of itself and what is not known yet: the workgroups that run at the same
        time, in a child process of up to a minute, once for each driver. Afterwards `features` and what plans are told
        stay as they are. Binding a kernel that needs to know calls it; no property does. Returns `features`."""
        return self.features

    @property
    def features(self) -> frozenset[str]:
        """What kernels may ask for here."""
        return self.info.features

    def limits_for(self, kernel: Kernel) -> Limits:
        """The limits for a kernel's plan: some are tried only for kernels that need to know."""
        return self.limits

    def require_open(self) -> None:
        """Raises where the device was closed, or belongs to a process that this one was forked from."""
        self.gate.require_open()

    def close(self) -> None:
        """Frees everything that hangs off the device, once the calls that are inside it, of any thread, have
        returned; later calls raise ClosedError. Closing twice is harmless. A signal's handler that interrupted such a
        call may close the device: it is then freed by the next `close`, or when it is forgotten."""
        # A child process owns nothing of its parent's device, not even the lock.
        if self.gate.forked:
            return
        with self._closing:
            self.gate.refuse()
            self.awaited.release(self.info.name)
            if self.gate.shut() and not self._closed:
                self._closed = True
                self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __del__(self) -> None:
        # A device that was forgotten, or never came to life, must not leak; at interpreter exit parts may be gone.
        with contextlib.suppress(Exception):
            self.close()

    def __repr__(self) -> str:
        closed = ", closed" if self.gate.refusal else ""
        return f"<Device {self.info.spec}: {self.info.name} ({self.info.type}{closed})>"

    def __dir__(self) -> Iterable[str]:
        """What all devices have: what else is there is of their own making."""
        return {*dir(Device), "info", "queue", "queues"}

    def _repr_html_(self) -> str:
        state = "closed" if self.gate.refusal else "open"
        return html_facts(f"Device {self.info.spec}", [*self.info.facts(), ("state", state)])

    @inside
    def empty(self, shape: SupportsIndex | Iterable[SupportsIndex], dtype: npt.DTypeLike | DType = np.float32) -> Array:
        """An array whose contents are undefined."""
        sizes = sizes_of(shape)
        if any(n < 0 for n in sizes):
            raise ShapeError(f"a shape cannot be negative: {sizes}.", "give lengths of 0 or more.")
        element = dtype_of(dtype)
        nbytes = math.prod(sizes) * element.size
        if nbytes > self.limits.storage_range:
            raise LimitError(
                f"an array of {nbytes} bytes is larger than {self.info.name!r} can bind ({self.limits.storage_range}).",
                "split it into smaller arrays, or choose another device.",
            )
        return Array(self, sizes, element, self._allocate(nbytes))

    @inside
    def zeros(self, shape: SupportsIndex | Iterable[SupportsIndex], dtype: npt.DTypeLike | DType = np.float32) -> Array:
        """An array of zeros."""
        array = self.empty(shape, dtype)
        self.write(array, np.zeros(array.shape, array.dtype.stored))
        return array

    @inside
    def full(
        self,
        shape: SupportsIndex | Iterable[SupportsIndex],
        value: complex,
        dtype: npt.DTypeLike | DType = np.float32,
    ) -> Array:
        """An array that holds one number everywhere."""
        array = self.empty(shape, dtype)
        array[...] = value
        return array

    @inside
    def array(self, values: Any, dtype: npt.DTypeLike | DType | None = None) -> Array:
        """A copy of host data (NumPy, DLPack, nested lists) on this device, converted to `dtype` where one is named.
        Lists of Python's floats are float64, as in NumPy; truth values are stored as bytes. Values of
        dtype="bf16" are float32 on the host, rounded here and widened when they are read."""
        host = host_array(values, dtype)
        element = dtype_of(host.dtype if dtype is None else dtype)
        array = self.empty(host.shape, element)
        self.write(array, element.to_stored(host))
        return array

    @inside
    def from_dlpack(self, values: Any, *, copy: bool | None = None) -> Array:
        """An array of NumPy, or of any library with DLPack, in its own memory where this device can use that, else a
        copy of it; `copy=True` always copies, `copy=False` never: it raises instead. The NumPy device uses any memory
        of the host that lies in one piece in C order and may be written; Vulkan devices such memory where the driver
        imports it, from a multiple of `part_alignment` bytes on. What is borrowed lives as long as the array. Who
        touches it when is the caller's business: wait for work before looking, and look before the next."""
        return from_dlpack(self.array, self._borrow, values, copy)

    def _borrow(self, host: HostArray) -> Array:
        """An array in memory of the host: C-ordered, writeable, of an element type that devices store."""
        raise UnsupportedOperationError(
            f"{self.info.name!r} uses no memory of the host.", "copy the values: device.array(values)."
        )

    def host_memory(self, array: Array, *, quick: bool = False) -> HostArray | None:
        """The array's own memory as an array of the host, once all work submitted so far is done; it lives as long as
        anybody uses it. None where the host does not reach it, or, if it is to be `quick`, not through its caches."""
        return None

    @inside
    def block(self, nbytes: SupportsIndex) -> Block:
        """Memory of which parts are arrays (`block.array(offset, shape, dtype)`): it may be larger than what a shader
        can bind, up to the device's largest allocation. Its contents are undefined."""
        size = block_size(self, nbytes)
        return Block(self, size, self._allocate(size), self._part)

    def part(
        self,
        array: Array,
        offset: SupportsIndex,
        shape: SupportsIndex | Iterable[SupportsIndex],
        dtype: npt.DTypeLike | DType | None = None,
    ) -> Array:
        """An array in the memory of another, from a byte on that is a multiple of `part_alignment`; of the same type
        unless `dtype` names another. `array[1:3]` and `array.reshape(...)` are easier to read."""
        require_on(self, "part", "an array", array)
        start = whole_number(offset, "the byte at which a part starts")
        sizes = sizes_of(shape)
        element = array.dtype if dtype is None else dtype_of(dtype)
        nbytes = math.prod(sizes) * element.size
        if start % self.part_alignment:
            raise AlignmentError(
                f"a part of an array cannot start at byte {start} on {self.info.name!r}.",
                f"start it at a multiple of {self.part_alignment} bytes.",
            )
        if start < 0 or any(n < 0 for n in sizes) or start + nbytes > array.nbytes:
            raise ShapeError(
                f"{nbytes} bytes from byte {start} on are not within {array.description}.",
                "choose a part of the array.",
            )
        return self.view(array, start, sizes, element)

    def view(self, array: Array, offset: int, shape: Shape, dtype: DType) -> Array:
        """A view of bytes of an array that lie within it, at any offset: what kernels need of one is checked when it is
        bound."""
        nbytes = math.prod(shape) * dtype.size
        start = offset if nbytes else 0  # nothing lies nowhere: at the end of the memory no descriptor could start
        return Array(self, shape, dtype, self._part(array.storage, start, nbytes), array.offset + start)

    @property
    def part_alignment(self) -> int:
        """Bytes: parts of arrays start at multiples of it. Shaders may read vectors of 16 bytes to the end of one."""
        return max(16, self.limits.offset_alignment)

    @property
    def tunings(self) -> Memory:
        """The tunings that were measured fastest on this device (`dashi kernels tune`)."""
        if self._tunings is None:
            self._tunings = Memory(self.info)
        return self._tunings

    def tuning_for(self, kernel: Kernel, variant: str, asked: str | None = None) -> str | None:
        """The name of the tuning that a kernel runs with here: the one asked for, else the environment's
        (DASHI_TUNINGS), else the fastest measured, else the kernel's own choice. None where it has no tunings."""
        remembered = self.tunings.get(kernel, variant) if kernel.tunings else None
        return choose(kernel, variant, self.limits, remembered, asked)

    def pipeline_sources(self, steps: Sequence[AnyStep]) -> tuple[PipelineSource, ...]:
        """What the pipelines of bound steps are made from, each once; nothing where none are made."""
        return ()

    def prepare_pipelines(self, sources: Sequence[PipelineSource]) -> None:
        """Begins to make pipelines that steps are about to need, beside what the caller does. The binaries must be
        those that this device gave for the same kernels."""

    def check(self, kernel: str | Kernel) -> None:
        """Compares what this device computes with the kernel's NumPy reference, bit for bit, on its own small cases; a
        TwinError names the first difference. `dashi kernels check` tries more."""
        check_kernel(self, as_kernel(kernel))

    @inside
    def program(
        self,
        steps: Sequence[AnyStep],
        *,
        label: str = "",
        barriers: Barriers = "auto",
        timed: Timed = False,
        queue: int | Role = 0,
        fetch: Sequence[Array] = (),
        slots: int = 2,
        feed: Sequence[Array] = (),
        direct: bool = False,
    ) -> Program:
        """Records steps in order; each sees what those before it wrote. Programs of one queue run in the order of
        their submission; between queues, `submit(after=...)` says what must come first. `timed` programs know how
        long runs took on the device's own clock (`Ticket.device_ns`), with `timed="steps"` each of their steps too
        (`Ticket.step_times`). What `fetch` names comes back to the host with every run
        (`Program.fetched`, `Ticket.fetched`), whatever is submitted meanwhile; what `feed` names takes new values from
        the host with every run (`submit(feed={array: values})`, or `Program.slot`). `slots` is how many runs may be
        under way or wait to be read (memory for them is taken when it is first needed). With `direct`, kernels may
        read and write these arrays in the slots themselves, which saves copies: what the arrays hold after a run is
        undefined then, and nobody else may use them."""
        options = recording(self, barriers, timed, queue, fetch, slots, feed, direct)
        program = self._program(require_steps(self, steps), str(label), options)
        return self.watcher(program) if self.watcher else program

    @inside
    def bind(
        self,
        kernel: str | Kernel,
        *inputs: Array,
        out: Array | Sequence[Array] | None = None,
        tuning: str | None = None,
        scratch: Scratch | None = None,
        **scalars: Number,
    ) -> Step:
        """A kernel bound to arrays of this device; outputs are made unless given, and the tuning is the device's
        choice unless named. Steps that are bound with the same `scratch` share the memory between their dispatches:
        a dict, empty at first, that keeps what is needed, or an array of yours (a part of a block) of `scratch_bytes`
        bytes or more. They may not run at the same time (programs of one queue do not)."""
        memory: Scratch = {} if scratch is None else scratch
        return bind(self, memory, kernel, inputs, out=out, tuning=tuning, scalars=scalars)

    def run(
        self,
        kernel: str | Kernel,
        *inputs: Any,
        out: Array | Sequence[Array] | None = None,
        tuning: str | None = None,
        **scalars: Number,
    ) -> Any:
        """Runs a kernel once: host arrays are copied in, the output array (or a tuple of them) is returned."""
        called = as_kernel(kernel)
        require_arrays(called, inputs, stretched=is_general(called))
        arrays = [a if isinstance(a, Array) else self.array(a) for a in inputs]
        step = self.bind(called, *arrays, out=out, tuning=tuning, scratch=None, **scalars)
        with self.program([step], label=step.kernel.name) as program:
            program.run()
        return step.outputs[0] if len(step.outputs) == 1 else step.outputs
