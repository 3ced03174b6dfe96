"""The exception tree. Every error says what happened, with which values, and ends with a `Fix:` sentence.

DashiError
├── InputError            what the caller passed does not fit
│   ├── DTypeError        an array or scalar of the wrong type
│   ├── ShapeError        an array of the wrong shape or size
│   │   └── BoundsError   an index beyond the end of an array
│   ├── AlignmentError    an offset or size that breaks an alignment rule
│   ├── UnsupportedOperationError  what arrays on a device do not do
│   ├── UnknownNameError  a name that nothing here has
│   ├── EntryPointError   an operator or model that an installed package declares twice, or that cannot be loaded
│   ├── GraphError        a graph, or a node of one, that cannot be
│   ├── StreamConfigError a description of a chain that says what cannot be
│   ├── FileError         a file that cannot be read, is not what it claims to be, or cannot be written
│   └── CertificateError  a certificate that was edited, or that this version cannot repeat
├── NonFiniteError        a state that is no longer finite stopped a rollout
├── BooksError            circulation that no account explains
├── KernelError           a kernel folder, its ABI or its binary is at fault
│   ├── KernelNotFoundError
│   ├── AbiError          the declaration contradicts itself, the shader or the rules
│   ├── CompileError      the shader does not compile
│   ├── SpirvError        a binary that is not the SPIR-V that was asked for
│   ├── StaleBinaryError  a binary that is missing, stale or damaged
│   ├── PortabilityError  a portable kernel uses what is not portable
│   └── TwinError         a device and the kernel's NumPy reference differ
├── ShardError            a process that ran a part of a job ended before its work was done
├── DeviceError           a device is at fault, or cannot do what was asked
│   ├── DeviceNotFoundError
│   ├── LoaderNotFoundError
│   ├── FeatureError      the device lacks a feature that a kernel needs
│   ├── LimitError        a device limit would be passed
│   ├── OutOfMemoryError
│   ├── DeviceLostError
│   ├── TimeoutError_     work did not finish in the time given
│   ├── ClosedError       use after close
│   │   └── ForkedError   use in a child process of a device that its parent opened
│   ├── BusyError         all slots of a program hold results that were not read
│   ├── NoResultError     the null device computes nothing
│   ├── HazardError       two commands of a program race: no barrier orders them
│   ├── HostStepError     a function of the host that a program calls failed
│   └── VulkanError       any other Vulkan result code
├── StreamError           a chain of stages, or its plan, is at fault
│   ├── StreamRuleError   a plan, or a State, that breaks one of the rules R1 to R5
│   ├── StreamContractError  who may write a buffer or own a State was not held to
│   ├── StageFailedError  a stage of a chain raised an error
│   ├── StalledError      a chain does not move on
│   └── RankLostError     a rank that a chain over machines cannot do without was lost
├── WorkerError           a process that was to do a part of a job ended by itself
└── CompilerMissingError  building shaders needs the `compile` extra

KeyboardInterrupt
└── Interrupted           Ctrl-C ended work that was under way; what was finished is its `partial`
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class DashiError(Exception):
    """Base of all errors of dashi: `what` happened, and the `fix`. `result` is what a job had finished all the same,
    as it would have been returned; None where that is nothing."""

    result: Any = None

    def __init__(self, what: str, fix: str) -> None:
        self.what = what
        self.fix = fix
        super().__init__(what, fix)

    def __str__(self) -> str:
        return f"{self.what} Fix: {self.fix}"


DISTRIBUTION = "dashi-compute"
"""What installers call this software. The package index's `dashi` is somebody else's (dataset shift)."""


def install_extra(name: str) -> str:
    """The command that installs an optional part: `compile`, `plot`, `fields`, `dmd` or `validation`."""
    return f"pip install '{DISTRIBUTION}[{name}]'"


class InputError(DashiError, ValueError):
    """What the caller passed does not fit."""


class DTypeError(InputError):
    """An array or scalar of the wrong type."""


class ShapeError(InputError):
    """An array of the wrong shape or size."""


class BoundsError(ShapeError, IndexError):
    """An index beyond the end of an array."""


class AlignmentError(InputError):
    """An offset or size that breaks an alignment rule."""


class UnsupportedOperationError(InputError, TypeError):
    """What NumPy's arrays do and arrays on a device do not: iteration, truth values, parts in many pieces."""


class UnknownNameError(InputError, KeyError):
    """A name that nothing here has."""


class EntryPointError(InputError):
    """An operator or model that two installed packages declare, or that cannot be loaded from the one that does."""


class GraphError(InputError):
    """A graph, or a node of one, that cannot be: wrong shapes or types, cycles, names that are taken or unknown."""


class StreamConfigError(InputError):
    """A description of a chain of stages that says what cannot be: an unknown key, a device that is not there."""


class FileError(InputError):
    """A file that cannot be read, is not what it claims to be, or cannot be written."""


class CertificateError(InputError):
    """A certificate that was edited, or that this version cannot repeat."""


class NonFiniteError(DashiError, ArithmeticError):
    """A state that is no longer finite stopped a rollout. `observation` says at which step, and where; `rollout` is
    what was done until then."""

    observation: Any = None
    rollout: Any = None


class BooksError(DashiError, ArithmeticError):
    """Circulation or impulse of a genealogy that no edge and no account explains."""


class ShardError(DashiError):
    """A process that ran a part of a job ended before its work was done, or could not be started."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C (or, on the command line, SIGTERM or SIGHUP) ended work that was under way. `partial` is what was finished
    until then: the Run, Simulation or Evaluation, as it would have been returned; None where there is nothing. All
    of it may be there, where Ctrl-C came too late to leave anything out: whoever has more to do must end all the
    same."""

    def __init__(self, partial: Any = None) -> None:
        super().__init__("stopped by Ctrl-C; what was finished is in `partial`")
        self.partial = partial


class KernelError(DashiError):
    """A kernel folder, its ABI or its binary is at fault."""


class KernelNotFoundError(KernelError, LookupError):
    """No kernel of that name."""


class AbiError(KernelError):
    """The declaration contradicts itself, the shader or the rules."""


class CompileError(KernelError):
    """The shader does not compile."""


class SpirvError(KernelError):
    """A binary that is not the SPIR-V that was asked for."""


class StaleBinaryError(KernelError):
    """A SPIR-V binary that is missing, stale or damaged."""


class PortabilityError(KernelError):
    """A portable kernel uses what is not portable."""


class TwinError(KernelError):
    """A device does not give the bits of a kernel's NumPy reference, or not within its bound. `index` is the first
    element that differs, `got` and `expected` its bits."""

    index: int | None = None
    got: str = ""
    expected: str = ""


class DeviceError(DashiError):
    """A device is at fault, or cannot do what was asked."""


class DeviceNotFoundError(DeviceError, LookupError):
    """No device matches."""


class LoaderNotFoundError(DeviceError):
    """There is no Vulkan loader on this machine."""


class FeatureError(DeviceError):
    """The device lacks a feature that a kernel needs."""


class LimitError(DeviceError):
    """A device limit would be passed."""


class OutOfMemoryError(DeviceError, MemoryError):
    """The device or the host has no memory left for this."""


class DeviceLostError(DeviceError):
    """The device was lost; its handles are dead."""


class TimeoutError_(DeviceError, TimeoutError):
    """Work did not finish in the time given."""


class ClosedError(DeviceError):
    """Use after close."""


class ForkedError(ClosedError):
    """Use in a child process of a device that its parent opened."""


class BusyError(DeviceError):
    """Every slot of a program holds the results of a run that were not read."""


class NoResultError(DeviceError):
    """The null device computes nothing, so there is nothing to read."""


class HazardError(DeviceError):
    """Two commands of a program touch the same bytes, and no barrier orders them."""


class HostStepError(DeviceError):
    """A function of the host that a program calls between its steps failed; the cause is its own error."""


class VulkanError(DeviceError):
    """A Vulkan call failed with a result code that has no error of its own."""


class StreamError(DashiError):
    """A chain of stages, or its plan, is at fault."""


class StreamRuleError(StreamError, ValueError):
    """A plan, or a State under way, that breaks a rule of the stream. `rule` is its name ("R2 role"), `op` and `device`
    what it was broken with; either may be empty."""

    rule: str = ""
    op: str = ""
    device: str = ""

    @classmethod
    def of(cls, rule: str, op: str, device: str, what: str, fix: str) -> StreamRuleError:
        """The error of a rule, an op and a device, whose text begins with the rule."""
        error = cls(f"{rule}: {what}", fix)
        error.rule, error.op, error.device = rule, op, device
        return error


class StreamContractError(StreamError):
    """Who may write a buffer, own a State or use a slot again was not held to: found by the checks of a debug run."""


class StageFailedError(StreamError):
    """A stage of a chain raised an error. `stage` and `step` say which and where; the cause is its error."""

    stage: str = ""
    step: int | None = None


class StalledError(StreamError, TimeoutError):
    """A chain does not move on: which link is full or empty, and who has to act."""


class RankLostError(StreamError):
    """A rank that a chain over machines cannot do without was lost."""


class WorkerError(DashiError):
    """A process that was to do a part of a job ended by itself: killed, or out of memory."""


class CompilerMissingError(DashiError, ImportError):
    """Building shaders needs the compiler wheel."""


def suggestion(name: object, known: Iterable[str]) -> str:
    """The beginning of a fix for a name that is none: "did you mean add or and? ", or nothing."""
    from difflib import get_close_matches

    near = get_close_matches(name, list(known), n=3) if isinstance(name, str) else []
    return f"did you mean {' or '.join(near)}? " if near else ""
