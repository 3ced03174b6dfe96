"""`check_kernel`: whether a kernel on the ternary carrier does what CORE kernels must, on given fields.

A CORE kernel is a deterministic operator K on fields of -1, 0 and +1 that creates no support, is idempotent or
contractive in a defect, and commutes with admissible transformations. Each claim is tried on every sample; one that
fails is reported with a counterexample made as small as possible. Passing is evidence, not proof.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from dashi import kernels
from dashi.core.carriers import _check_claims as check_claims
from dashi.core.carriers._check_claims import CLAIMS, Claim, DefectOf, Operation, Test, Violation
from dashi.core.carriers._check_shrink import shrink
from dashi.core.carriers.check_samples import (
    FieldSample,
    Symmetry,
    Transform,
    named_symmetries,
    picture,
    read_samples,
    torus,
)
from dashi.errors import InputError
from dashi.kernels.abi import Number
from dashi.runtime.device import Device
from dashi.types import HostArray

Outcome = Literal["pass", "fail", "not claimed", "not tested"]
Symmetries = Mapping[str, Transform] | Iterable[Symmetry | Transform]

PROJECTOR: Final[tuple[Claim, ...]] = (
    "deterministic", "no support creation", "keeps signs", "idempotent", "admissible",
)  # fmt: skip
"""What a closure projector such as annihilation claims: sites become 0 or stay as they are."""
DEPTH: Final = 8
"""Applications over which a contractive kernel is followed."""


@dataclass(frozen=True)
class Finding:
    """What came of one claim."""

    claim: Claim
    outcome: Outcome
    trials: int = 0
    """Samples tried; for admissibility, samples times symmetries."""
    fault: Violation | None = None
    """The smallest counterexample found, where it failed."""

    def as_json(self) -> dict[str, Any]:
        document: dict[str, Any] = {"claim": self.claim, "outcome": self.outcome, "trials": self.trials}
        if self.fault is not None:
            document["counterexample"] = {
                "what": self.fault.what,
                "symmetry": self.fault.symmetry or None,
                "site": None if self.fault.site is None else list(self.fault.site),
                "field": self.fault.sample.field.tolist(),
                "inputs": [_listed(x) for x in self.fault.sample.extras],
                "found": _listed(self.fault.found),
                "expected": None if self.fault.expected is None else self.fault.expected.tolist(),
            }
        return document


@dataclass(frozen=True)
class ClaimReport:
    """The outcome of every claim; `print` shows it."""

    kernel: str
    samples: int
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether everything that was claimed holds on every sample."""
        return all(f.outcome in ("pass", "not claimed") for f in self.findings)

    def __getitem__(self, claim: Claim) -> Finding:
        return next(f for f in self.findings if f.claim == claim)

    def as_json(self) -> dict[str, Any]:
        findings = [f.as_json() for f in self.findings]
        return {"kernel": self.kernel, "ok": self.ok, "samples": self.samples, "claims": findings}

    def __str__(self) -> str:
        verdict = "every claim holds" if self.ok else "FAILED"
        lines = [f"{self.kernel} on {self.samples} fields: {verdict}"]
        for finding in self.findings:
            lines.append(f"  {finding.claim:<19}  {finding.outcome}")
            if finding.fault is not None:
                lines += [f"      {line}" for line in _shown(finding.fault)]
        return "\n".join(lines)


def check_kernel(
    kernel: str | Operation,
    samples: Iterable[Any],
    *,
    device: Device | None = None,
    scalars: Mapping[str, Number] | None = None,
    against: Device | Operation | None = None,
    symmetries: Symmetries | None = None,
    defect: DefectOf | None = None,
    expect: Iterable[Claim] | None = None,
    depth: int = DEPTH,
) -> ClaimReport:
    """Tries every expected claim on every sample and reports, with a small counterexample for each that fails.

    - `kernel`: a callable from an int8 field (and further arrays) to a field, or a kernel's name, with `device` and
      `scalars`. `against`: the same kernel elsewhere, a second device or callable; their bits must agree.
    - `samples`: fields, or tuples of a field and further inputs; those of the field's shape are moved and cut with it.
      `check_samples.fields(shape, ...)` makes some.
    - `symmetries`: what K must commute with: `Symmetry` objects, callables on fields, or callables by name. The
      default is all symmetries of the torus, and the sign flip.
    - `defect`: a number for a field that K must never raise, followed over `depth` applications.
    - `expect`: the claims to try, by name. The default is "deterministic", "no support creation", "admissible", and
      "contractive" where a defect is given, else "idempotent". That K maps fields to fields is always tried.
    """
    fields_to_try = read_samples(samples)
    run, other = _operations(kernel, device, scalars, against)
    claims = _claims(expect, defect, other)
    findings: list[Finding] = []
    for claim in CLAIMS:
        if claim not in claims:
            findings.append(Finding(claim, "not claimed"))
        elif findings and findings[0].outcome == "fail":
            findings.append(Finding(claim, "not tested"))  # what gives no fields has no support, signs or symmetries
        elif claim == "admissible":
            findings.append(_admissible(run, fields_to_try, symmetries))
        else:
            findings.append(_try(claim, fields_to_try, _test(claim, run, other, defect, depth)))
    name = kernel if isinstance(kernel, str) else getattr(kernel, "__name__", "kernel")
    return ClaimReport(name, len(fields_to_try), tuple(findings))


def on_device(device: Device, name: str, **scalars: Number) -> Operation:
    """A kernel of the catalogue as a callable on NumPy fields."""
    kernel = kernels.get(name)
    numbers: dict[str, Any] = dict(scalars)

    def run(field: Any, *extras: Any) -> Any:
        # Kernels that take real numbers (ternary_threshold) get the trits as such.
        first = field.astype("float32") if kernel.inputs[0].dtype == "T" else field
        return device.run(kernel, first, *extras, **numbers).numpy()

    run.__name__ = name
    return run


def _operations(
    kernel: str | Operation,
    device: Device | None,
    scalars: Mapping[str, Number] | None,
    against: Device | Operation | None,
) -> tuple[Operation, Operation | None]:
    if isinstance(kernel, str):
        if device is None:
            raise InputError(f"the kernel {kernel!r} needs a device to run on.", "pass device=dashi.open().")
        numbers = scalars or {}
        there = on_device(against, kernel, **numbers) if isinstance(against, Device) else against
        return on_device(device, kernel, **numbers), there
    if device is not None or scalars:
        raise InputError(
            "a callable brings its own device and scalars.",
            "leave `device` and `scalars` away, or pass a kernel's name instead of a callable.",
        )
    if isinstance(against, Device):
        raise InputError(
            "a callable cannot be moved to another device.", "pass as `against` a callable that runs there."
        )
    return kernel, against


def _claims(expect: Iterable[Claim] | None, defect: DefectOf | None, other: Operation | None) -> set[Claim]:
    """What to try. A second place to run is a claim of its own; that results are fields underlies all others."""
    if expect is None:
        shape: Claim = "idempotent" if defect is None else "contractive"
        chosen: set[Claim] = {"deterministic", "no support creation", shape, "admissible"}
    else:
        chosen = set(expect)
    unknown = sorted(chosen - set(CLAIMS))
    if unknown:
        raise InputError(f"there is no claim {unknown[0]!r}.", f"claims are: {', '.join(CLAIMS)}.")
    if "contractive" in chosen and defect is None:
        raise InputError(
            "a kernel contracts in a defect, and none was given.", "pass defect=..., a number for a field."
        )
    if "same everywhere" in chosen and other is None:
        raise InputError("there is no second place to compare with.", "pass against=..., a device or a callable.")
    chosen.add("ternary")
    if other is not None:
        chosen.add("same everywhere")
    return chosen


def _test(claim: Claim, run: Operation, other: Operation | None, defect: DefectOf | None, depth: int) -> Test:
    if claim == "contractive":
        assert defect is not None
        return check_claims.contractive(run, defect, depth)
    if claim == "same everywhere":
        assert other is not None
        return check_claims.same_everywhere(run, other)
    plain = {
        "ternary": check_claims.ternary,
        "deterministic": check_claims.deterministic,
        "no support creation": check_claims.no_support_creation,
        "keeps signs": check_claims.keeps_signs,
        "idempotent": check_claims.idempotent,
    }
    return plain[claim](run)


def _try(claim: Claim, samples: tuple[FieldSample, ...], test: Test) -> Finding:
    for number, sample in enumerate(samples, 1):
        fault = test(sample)
        if fault is not None:
            return Finding(claim, "fail", number, shrink(fault, test))
    return Finding(claim, "pass", len(samples))


def _admissible(run: Operation, samples: tuple[FieldSample, ...], symmetries: Symmetries | None) -> Finding:
    chosen = None if symmetries is None else named_symmetries(symmetries)
    trials = 0
    for sample in samples:
        for symmetry in torus(sample.field.ndim) if chosen is None else chosen:
            trials += 1
            test = check_claims.admissible(run, symmetry)
            fault = test(sample)
            if fault is not None:
                return Finding("admissible", "fail", trials, shrink(fault, test))
    return Finding("admissible", "pass", trials)


def _listed(values: HostArray) -> Any:
    """Numbers as JSON has them: those that are not finite as text."""
    if values.dtype.kind in "biu" or (values.dtype.kind == "f" and np.all(np.isfinite(values.astype(np.float64)))):
        return values.tolist()
    return np.asarray(values.astype(str)).tolist()


def _shown(fault: Violation) -> Iterator[str]:
    """A counterexample in lines: what is wrong, the field, what it gave and what it should have given."""
    yield fault.what
    held = int((fault.sample.field != 0).sum())
    sites = "1 supported site" if held == 1 else f"{held} supported sites"
    yield f"for a field of shape {fault.sample.field.shape} with {sites}"
    pictures = {"field": picture(fault.sample.field)}
    if fault.found.dtype == np.int8:  # otherwise it is no field
        pictures["gives"] = picture(fault.found.astype(np.int8, copy=False))
    if fault.expected is not None:
        pictures["should"] = picture(fault.expected)
    if any(pictures.values()):
        height = max(len(lines) for lines in pictures.values())
        widths = {name: max(len(name), *(len(line) for line in lines or ("",))) for name, lines in pictures.items()}
        yield "   ".join(name.ljust(widths[name]) for name in pictures).rstrip()
        for row in range(height):
            cells = ((lines[row] if row < len(lines) else "").ljust(widths[name]) for name, lines in pictures.items())
            yield "   ".join(cells).rstrip()
