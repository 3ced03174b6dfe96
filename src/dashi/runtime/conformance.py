"""Does a device compute what the kernels' NumPy references say? One harness for every kernel, device and case.

Portable kernels must give the references' bits; others must stay within their stated bound of the reference in higher
precision. Outputs are poisoned before the run, so that an element which was never written shows; inputs must come back
as they went in; and kernels that may work in place must give the same bits when they do. Every tuning of a kernel is
held to the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dashi.errors import ClosedError, DashiError, DeviceLostError, LimitError
from dashi.kernels import _cases as cases
from dashi.kernels._calls import resolve_call
from dashi.kernels.abi import Case, Kernel, Number, Operand, plan_features
from dashi.types import DTYPES, DType, HostArray

if TYPE_CHECKING:
    from dashi.runtime.array import Array
    from dashi.runtime.device import Device

_POISON: Final = {1: 0xA5, 2: 0xFEA5, 4: 0xFFF5A5A5, 8: 0xFFF5A5A5FFF5A5A5}
"""As a float, a NaN that no kernel makes; as an integer, an unlikely number."""

QUICK: Final = ("normal", "adversarial")
_TAME: Final = ("normal", "integers")
_QUICK_SIZE: Final = 5000


@dataclass(frozen=True)
class Trial:
    """One kernel variant on one case with one distribution of inputs; `tuning` None leaves that to the device."""

    variant: str
    case: int
    distribution: str
    tuning: str | None = None


@dataclass(frozen=True)
class Result:
    """What came of a trial. `skipped` names the features that the device lacks, or the limit that a tuning breaks;
    `index` is the first element (in C order) that differs, `got` and `expected` its bits."""

    kernel: str
    variant: str
    case: int
    shapes: str
    distribution: str
    ok: bool
    message: str = ""
    skipped: str = ""
    index: int | None = None
    got: str = ""
    expected: str = ""
    tuning: str = ""


def trials(kernel: Kernel, *, quick: bool = False) -> Iterator[Trial]:
    """Every trial of a kernel; `quick` keeps two distributions and the smaller cases, or the smallest if none is small.
    Tunings but the first get all cases, but two distributions only: they take other paths through the same arithmetic.
    """
    largest = max(_QUICK_SIZE, min(map(_size, kernel.cases), default=0))
    for variant in kernel.dtypes:
        for number, case in enumerate(kernel.cases):
            if quick and _size(case) > largest:
                continue
            free = any(_kind(o, variant).is_float and o.name not in case.fill for o in kernel.inputs)
            for name in _distributions(kernel, quick) if free else ("given",):
                few = name in QUICK or not free
                yield from (Trial(variant, number, name, t) for t in _tunings(kernel) if t == _first(kernel) or few)


def _size(case: Case) -> int:
    """Elements of a case's largest input."""
    return max((int(np.prod(shape, dtype=np.int64)) for shape in case.shapes.values()), default=0)


def _tunings(kernel: Kernel) -> tuple[str | None, ...]:
    return tuple(kernel.tunings) or (None,)


def _first(kernel: Kernel) -> str | None:
    return _tunings(kernel)[0]


def _distributions(kernel: Kernel, quick: bool) -> tuple[str, ...]:
    """An error bound says nothing of sums that overflow on the way, so only portable kernels get awkward inputs."""
    usual = QUICK if quick else tuple(cases.DISTRIBUTIONS)
    return usual if kernel.portable else tuple(name for name in usual if name in _TAME)


class Sample:
    """The inputs of one case under one distribution, and what the reference makes of them, computed once."""

    def __init__(
        self, kernel: Kernel, variant: str, scalars: Mapping[str, Number], inputs: Sequence[HostArray]
    ) -> None:
        self.kernel, self.variant = kernel, variant
        self.scalars = dict(scalars)
        self.inputs = tuple(inputs)

    @cached_property
    def expected(self) -> tuple[HostArray, ...]:
        """What the reference makes, in higher precision for kernels that are not portable."""
        inputs = [values.copy() for values in self.inputs]
        if not self.kernel.portable:
            inputs = [values.astype(_WIDER.get(values.dtype.name, values.dtype)) for values in inputs]
        # The scalars as a device sees them: checked, completed and rounded.
        call = resolve_call(self.kernel, self.variant, [values.shape for values in inputs], self.scalars)
        returned = self.kernel.reference(*inputs, **call.scalars)
        return tuple(np.asarray(m) for m in (returned if isinstance(returned, tuple) else (returned,)))


Samples = Callable[[str, int, str], Sample]


def samples(kernel: Kernel, seed: int = 0) -> Samples:
    """Samples by variant, case and distribution. The last is kept: the tunings of a kernel are tried on it in turn."""

    @lru_cache(maxsize=1)
    def make(variant: str, number: int, distribution: str) -> Sample:
        case = kernel.cases[number]
        # A case whose inputs are all its own is the same under every distribution.
        drawn = next(iter(cases.DISTRIBUTIONS)) if distribution == "given" else distribution
        inputs = cases.inputs(kernel, case, variant, drawn, seed)
        return Sample(kernel, variant, case.scalars, list(inputs.values()))

    return make


def check(device: Device, kernel: Kernel, *, quick: bool = False, seed: int = 0) -> Iterator[Result]:
    """Runs every trial of a kernel on a device."""
    by_trial = samples(kernel, seed)
    return (check_one(device, kernel, trial, by_trial=by_trial) for trial in trials(kernel, quick=quick))


def check_one(
    device: Device, kernel: Kernel, trial: Trial, *, seed: int = 0, by_trial: Samples | None = None
) -> Result:
    """Runs one trial. What the kernel or device gets wrong is a result; only a lost or closed device is an error."""
    case = kernel.cases[trial.case]
    result = Result(
        kernel.name,
        trial.variant,
        trial.case,
        shape_text(case),
        trial.distribution,
        ok=True,
        tuning=trial.tuning or "",
    )
    missing = missing_features(device, kernel, trial.variant, trial.tuning, case)
    if missing:
        return replace(result, skipped=", ".join(missing))
    try:
        sample = (by_trial or samples(kernel, seed))(trial.variant, trial.case, trial.distribution)
        # Overflow and signalling NaNs are among the inputs on purpose.
        with np.errstate(all="ignore"):
            return _Run(device, sample, trial.tuning).judge(result)
    except (DeviceLostError, ClosedError):
        raise
    except DashiError as error:
        # A tuning made for larger devices need not fit this one, as long as the device does not choose it itself.
        foreign = trial.tuning is not None and trial.tuning != device.tuning_for(kernel, trial.variant)
        if foreign and isinstance(error, LimitError):
            return replace(result, skipped=f"limits for tuning {trial.tuning}")
        return replace(result, ok=False, message=str(error))


def shape_text(case: Case) -> str:
    """The shapes of a case for people: x[65] y[65]."""
    return " ".join(f"{name}{list(shape)}" for name, shape in case.shapes.items())


def missing_features(
    device: Device, kernel: Kernel, variant: str, tuning: str | None = None, case: Case | None = None
) -> list[str]:
    """What the device lacks to run this variant with a tuning (None: its own choice) on a case (None: the first)."""
    example = case or kernel.cases[0]
    shapes = [example.shapes[o.name] for o in kernel.inputs]
    try:
        chosen = device.tuning_for(kernel, variant, tuning)
        numbers = None if chosen is None else kernel.tunings[chosen]
        plan = kernel.plan(resolve_call(kernel, variant, shapes, example.scalars, device.limits_for(kernel), numbers))
    except DashiError:
        return []  # what cannot be planned is an error of the run
    needed = plan_features(kernel, plan, variant) - device.info.features
    return sorted(needed - device.probe()) if needed else []


@dataclass(frozen=True)
class _Run:
    device: Device
    sample: Sample
    tuning: str | None

    @property
    def kernel(self) -> Kernel:
        return self.sample.kernel

    def judge(self, result: Result) -> Result:
        if self.device.info.type == "null":
            self._compute(None)
            return replace(result, message="recorded, not computed")
        wrong = self._declared_otherwise(self.sample.expected)
        if wrong:
            return replace(result, ok=False, message=wrong)
        comparison = self._compare(result, self._compute(None), "")
        places = self._in_place() if self.kernel.in_place else ()
        for output, position in places:
            if not comparison.ok:
                break
            how = f" with {self.kernel.outputs[output].name} in place of {self.kernel.inputs[position].name}"
            comparison = self._compare(result, self._compute((output, position)), how)
        return comparison

    def _declared_otherwise(self, expected: tuple[HostArray, ...]) -> str:
        """What the reference makes must be what the kernel declares: a device would convert it silently."""
        if len(expected) != len(self.kernel.outputs):
            return f"the reference makes {len(expected)} outputs, {len(self.kernel.outputs)} are declared"
        for operand, values in zip(self.kernel.outputs, expected, strict=True):
            kind = _kind(operand, self.sample.variant)
            if self.kernel.portable and values.dtype != kind.stored:
                return f"the reference makes {operand.name} as {values.dtype}, declared is {kind.stored}"
        return ""

    def _compute(self, in_place: tuple[int, int] | None) -> tuple[list[HostArray], str]:
        """The outputs, and what happened to the inputs that should not have happened."""
        kinds = [_kind(operand, self.sample.variant) for operand in self.kernel.inputs]
        arrays = [self.device.array(v).view(kind) for v, kind in zip(self.sample.inputs, kinds, strict=True)]
        scalars = self.sample.scalars
        step = self.device.bind(self.kernel, *arrays, out=None, tuning=self.tuning, scratch=None, **scalars)
        outputs = list(step.outputs)
        if in_place is not None:
            outputs[in_place[0]] = arrays[in_place[1]]
            step = self.device.bind(self.kernel, *arrays, out=outputs, tuning=self.tuning, scratch=None, **scalars)
        for position, array in enumerate(outputs):
            if in_place is None or position != in_place[0]:
                _words_of(array).write(_poison(array.shape, array.dtype))
        with self.device.program([step], label=self.kernel.name) as program:
            program.run()
        if self.device.info.type == "null":
            return [], ""
        for position, (operand, array) in enumerate(zip(self.kernel.inputs, arrays, strict=True)):
            overwritten = in_place is not None and position == in_place[1]
            if not overwritten and _words_of(array).numpy().tobytes() != self.sample.inputs[position].tobytes():
                return [], f"the input {operand.name} was modified"
        return [_words_of(array).numpy() for array in outputs], ""

    def _in_place(self) -> Iterator[tuple[int, int]]:
        """The (output, input) pairs that may share memory: the same type and shape."""
        for output, target in enumerate(self.kernel.outputs):
            for position, operand in enumerate(self.kernel.inputs):
                if operand.dtype == target.dtype and operand.shape == target.shape:
                    yield output, position

    def _compare(self, result: Result, computed: tuple[list[HostArray], str], how: str) -> Result:
        values, problem = computed
        if problem:
            return replace(result, ok=False, message=problem + how)
        return compare(self.kernel, result, values, self.sample.expected, how)


def compare(
    kernel: Kernel, result: Result, values: Sequence[HostArray], expected: Sequence[HostArray], how: str = ""
) -> Result:
    """The result, with the first difference between what a device made and what the reference says, if there is one:
    of bits for portable kernels and integers, past the bound for others."""
    for operand, got, reference in zip(kernel.outputs, values, expected, strict=True):
        if got.size != reference.size:
            text = f"the reference makes {reference.size} elements of {operand.name}, the device {got.size}{how}"
            return replace(result, ok=False, message=text)
        if kernel.portable or got.dtype.kind != "f":
            result = _same_bits(result, operand, got, reference, how)
        else:
            result = _within(result, operand, got, reference, kernel.bound or 0.0, how)
        if not result.ok:
            break
    return result


_WIDER: Final[dict[str, Any]] = {"float16": np.float64, "float32": np.float64, "float64": np.longdouble}


def _kind(operand: Operand, variant: str) -> DType:
    return DTYPES[variant] if operand.dtype == "T" else DTYPES[operand.dtype]


def _words(values: HostArray) -> Any:
    return np.ascontiguousarray(values).reshape(-1).view(np.dtype(f"u{values.dtype.itemsize}"))


def _words_of(array: Array) -> Array:
    """The array itself; one of bf16 or of truth values as the integers that its values are stored as."""
    words = {"bf16": "u16", "bool": "u8"}.get(array.dtype.name)
    return array.view(words) if words else array


def _poison(shape: tuple[int, ...], kind: DType) -> HostArray:
    word = np.dtype(f"u{kind.size}")
    return np.full(shape, _POISON[kind.size], word).view(word if kind.kind == "b" else kind.stored)


def _same_bits(result: Result, operand: Operand, got: HostArray, reference: HostArray, how: str) -> Result:
    ours, theirs = _words(got), _words(reference)
    different = np.flatnonzero(ours != theirs)
    if not different.size:
        return result
    index = int(different[0])
    digits = got.dtype.itemsize * 2
    unwritten = int(ours[index]) == _POISON.get(got.dtype.itemsize)
    text = "was never written" if unwritten else f"is {got.reshape(-1)[index]!r}, not {reference.reshape(-1)[index]!r}"
    return replace(
        result,
        ok=False,
        message=f"{operand.name}[{index}] {text}{how}; {different.size} of {ours.size} elements differ",
        index=index,
        got=f"0x{int(ours[index]):0{digits}x}",
        expected=f"0x{int(theirs[index]):0{digits}x}",
    )


def _within(result: Result, operand: Operand, got: HostArray, wanted: HostArray, bound: float, how: str) -> Result:
    """Relative L2 error over the elements that are finite in the output's type; the others must be equal."""
    ours, theirs = got.reshape(-1).astype(np.longdouble), wanted.reshape(-1).astype(np.longdouble)
    narrow = theirs.astype(got.dtype)
    finite = np.isfinite(narrow)
    same = (ours == narrow) | (np.isnan(ours) & np.isnan(narrow))
    odd = np.flatnonzero(np.where(finite, ~np.isfinite(ours), ~same))
    if odd.size:
        index = int(odd[0])
        text = f"{operand.name}[{index}] is {ours[index]!r}, not {theirs[index]!r}{how}"
        return replace(result, ok=False, message=text, index=index)
    size = float(np.sqrt(np.sum(theirs[finite] ** 2)))
    error = float(np.sqrt(np.sum((ours[finite] - theirs[finite]) ** 2)))
    relative = error / size if size else error
    if not relative <= bound:  # NaN is not within any bound
        text = f"{operand.name} has a relative error of {relative:.3g}, more than {bound:g}{how}"
        return replace(result, ok=False, message=text)
    return result
