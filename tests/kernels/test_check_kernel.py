"""The checker finds what is wrong with a kernel, shows it small, and passes the house's own."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dashi.core.carriers._check_claims import CLAIMS, Violation
from dashi.core.carriers.check_defects import majority_energy, opposite_pairs, support_size
from dashi.core.carriers.check_kernel import PROJECTOR, ClaimReport, check_kernel, on_device
from dashi.core.carriers.check_samples import SIGN_FLIP, fields, reflection, torus, translation
from dashi.errors import DashiError, DTypeError, InputError, KernelNotFoundError
from dashi.kernels._torus import moved, shifts
from dashi.runtime._cpu_device import CpuDevice
from dashi.runtime.device import Device

Field = NDArray[np.int8]
CPU = CpuDevice()
SAMPLES = [*fields((16, 16), (5, 9), (33,))]


def box(s: Field) -> list[NDArray[np.int32]]:
    return [moved(s.astype(np.int32), shift) for shift in shifts(s.shape, 1)]


def growing_majority(s: Field) -> Field:
    """The planted fault: sites without support vote too."""
    return np.sign(sum(box(s), np.zeros(s.shape, np.int32))).astype(np.int8)


def flipping_annihilator(s: Field) -> Field:
    """The planted fault: where both signs meet a site is turned instead of emptied."""
    seen = box(s)
    both = np.any([x > 0 for x in seen], axis=0) & np.any([x < 0 for x in seen], axis=0)
    return np.where(both, -s, s)


def fault_of(report: ClaimReport, claim: Any) -> Violation:
    result = report[claim]
    assert result.outcome == "fail"
    assert result.fault is not None
    return result.fault


def test_the_support_growth_of_a_wrong_majority_is_found_and_shown_on_two_sites() -> None:
    report = check_kernel(growing_majority, [*fields((16, 16))])
    assert not report.ok
    fault = fault_of(report, "no support creation")
    assert fault.sample.field.tolist() == [[1, 0]]
    assert fault.found.tolist() == [[1, 1]]
    assert fault.site == (0, 1)
    assert fault.what == "site (0, 1) has no support and becomes +1"
    assert report["deterministic"].outcome == report["admissible"].outcome == "pass"


def test_the_turned_sign_of_a_wrong_annihilator_is_found_and_shown_on_two_sites() -> None:
    report = check_kernel(flipping_annihilator, [*fields((16, 16))], expect=PROJECTOR)
    fault = fault_of(report, "keeps signs")
    assert sorted(fault.sample.field.reshape(-1).tolist()) == [-1, 1]
    assert fault.what == "site (0, 0) is -1 and becomes +1"
    assert report["no support creation"].outcome == "pass"
    # Also without being told that it is a projector: it turns the same signs back.
    assert fault_of(check_kernel(flipping_annihilator, SAMPLES), "idempotent").sample.field.size == 2


def test_growth_that_is_declared_is_not_held_against_a_kernel() -> None:
    grow = {"grow": 1}
    report = check_kernel("ternary_majority", SAMPLES, device=CPU, scalars=grow, expect=("deterministic", "admissible"))
    assert report.ok
    assert report["no support creation"].outcome == "not claimed"
    assert not check_kernel("ternary_majority", SAMPLES, device=CPU, scalars=grow).ok


@pytest.mark.parametrize("scalars", [{}, {"eta": 3}, {"radius": 2, "eta": 2}, {"centre": 0}, {"centre": -2, "eta": 2}])
def test_the_majority_kernel_passes_and_contracts_in_its_energy(device: Device, scalars: dict[str, int]) -> None:
    report = check_kernel(
        "ternary_majority", SAMPLES, device=device, scalars=scalars, against=CPU, defect=majority_energy(**scalars)
    )
    assert report.ok, str(report)
    assert [f.claim for f in report.findings if f.outcome == "not claimed"] == ["keeps signs", "idempotent"]


@pytest.mark.parametrize(
    ("name", "scalars"),
    [
        ("ternary_annihilate_pairs", {}),
        ("ternary_annihilate_pairs", {"radius": 2}),
        ("ternary_threshold", {"tau": 0.5}),
    ],
)
def test_the_projectors_of_the_house_pass(device: Device, name: str, scalars: dict[str, Any]) -> None:
    report = check_kernel(name, SAMPLES, device=device, scalars=scalars, against=CPU, expect=PROJECTOR)
    assert report.ok, str(report)
    contracting = check_kernel(name, SAMPLES, device=device, scalars=scalars, defect=opposite_pairs)
    assert contracting.ok, str(contracting)


def test_annihilation_by_coherence_passes_with_a_coherence_that_moves_along(device: Device) -> None:
    rng = np.random.default_rng(3)
    samples = [(s, rng.random(s.shape, dtype=np.float32)) for s in SAMPLES]
    report = check_kernel(
        "ternary_annihilate", samples, device=device, scalars={"eps": 0.5}, against=CPU, expect=PROJECTOR
    )
    assert report.ok, str(report)


@pytest.mark.parametrize("scalars", [{"theta": 0.5}, {"theta": 0.5, "head_on": 1}])
def test_annihilation_by_clash_passes_with_strengths_that_move_along(device: Device, scalars: dict[str, Any]) -> None:
    rng = np.random.default_rng(4)
    grids = [s for s in SAMPLES if s.ndim == 2]
    samples = [(s, rng.random(s.shape, dtype=np.float32)) for s in grids]
    name = "ternary_annihilate_clash"
    report = check_kernel(name, samples, device=device, scalars=scalars, against=CPU, expect=PROJECTOR)
    assert report.ok, str(report)
    contracting = check_kernel(name, samples, device=device, scalars=scalars, defect=opposite_pairs)
    assert contracting.ok, str(contracting)


def test_a_rule_that_raises_interfaces_is_found() -> None:
    def alternating(field: Field) -> Field:
        """Every second site has its sign turned."""
        odd = np.indices(field.shape).sum(axis=0) % 2
        return np.where(odd > 0, -field, field).astype(np.int8)

    report = check_kernel(alternating, [np.ones((4, 4), np.int8)], defect=opposite_pairs, expect=("contractive",))
    assert fault_of(report, "contractive").sample.field.size <= 4
    assert not check_kernel(alternating, [np.ones((4, 4), np.int8)], expect=("keeps signs",)).ok


def test_weights_stay_where_they_are_and_lopsided_ones_are_found_by_reflections() -> None:
    even, lopsided = np.array([[1, 2, 1]], np.int32), np.array([[3, 1, 1]], np.int32)
    rings = [*fields((17,))]
    expected: Any = ("deterministic", "no support creation", "admissible")
    kernel = on_device(CPU, "ternary_majority_weighted")
    assert check_kernel(kernel, [(s, even) for s in rings], expect=expected).ok
    report = check_kernel(kernel, [(s, lopsided) for s in rings], expect=expected)
    fault = fault_of(report, "admissible")
    assert fault.symmetry == "reflection of axis 0"
    assert fault.sample.field.size <= 3
    assert np.array_equal(fault.sample.extras[0], lopsided)


def test_a_kernel_with_a_memory_is_not_deterministic() -> None:
    calls: list[int] = []

    def every_fifth(s: Field) -> Field:
        calls.append(1)
        return np.zeros_like(s) if len(calls) % 5 == 0 else s

    fault = fault_of(check_kernel(every_fifth, SAMPLES, expect=("deterministic",)), "deterministic")
    assert "the first time and" in fault.what
    assert np.count_nonzero(fault.sample.field) >= 1


def test_a_kernel_cannot_hide_by_changing_its_input_or_reusing_its_output() -> None:
    values = np.zeros((16, 16), np.int8)

    def shares(s: Field) -> Field:
        s[...] = -s
        values[...] = s
        return values

    report = check_kernel(shares, [*fields((16, 16))], expect=("deterministic", "keeps signs"))
    assert report["deterministic"].outcome == "pass"
    assert fault_of(report, "keeps signs").found.tolist() != fault_of(report, "keeps signs").sample.field.tolist()


def test_two_places_that_disagree_are_told_apart() -> None:
    def elsewhere(s: Field) -> Field:
        made = s.copy()
        made[s.shape[0] // 2 :] = 0
        return made

    report = check_kernel(lambda s: s, SAMPLES, against=elsewhere)
    fault = fault_of(report, "same everywhere")
    assert fault.sample.field.tolist() in ([[1]], [1])
    assert fault.what in {"site (0, 0) is +1 here and 0 there", "site 0 is +1 here and 0 there"}


@pytest.mark.parametrize(
    ("kernel", "what"),
    [
        (lambda s: s[:-1], "a field of shape (1, 1) became one of shape (0, 1)"),
        (lambda s: s * 0.5, "the result holds float64, not trits"),
        (lambda s: 3 * s, "site (0, 0) became 3"),
    ],
)
def test_what_gives_no_field_fails_and_nothing_else_is_tested(kernel: Callable[[Any], Any], what: str) -> None:
    report = check_kernel(kernel, [*fields((4, 4))])
    assert fault_of(report, "ternary").what == what
    assert {f.outcome for f in report.findings[1:]} == {"not claimed", "not tested"}
    assert not report.ok
    assert what in str(report)


def test_a_rising_defect_is_found_with_the_application_in_which_it_rises() -> None:
    report = check_kernel(lambda s: np.roll(s, 1, -1), SAMPLES, defect=lambda s: float(s.reshape(-1)[0] != 0))
    fault = fault_of(report, "contractive")
    assert fault.what == "the defect rises from 0 to 1 in application 2"
    assert fault.sample.field.tolist() == [[1, 0]]
    nothing = check_kernel(lambda s: s, SAMPLES, defect=lambda _: float("nan"))
    assert nothing["contractive"].outcome == "fail"


def test_majority_is_not_contractive_in_every_defect_and_not_idempotent() -> None:
    assert check_kernel("ternary_majority", SAMPLES, device=CPU, defect=support_size).ok
    assert check_kernel("ternary_majority", SAMPLES, device=CPU)["idempotent"].outcome == "fail"


@pytest.mark.parametrize(
    ("kernel", "symmetry"),
    [
        (lambda s: np.where(s > 0, s, 0).astype(np.int8), "sign flip"),
        (lambda s: np.where(np.arange(s.shape[-1]) == 0, 0, s).astype(np.int8), "translation by 1 along axis 1"),
        (lambda s: np.where(np.roll(s, 1, 0) != 0, s, 0), "reflection of axis 0"),
        (lambda s: np.where((np.roll(s, 1, 0) != 0) & (np.roll(s, -1, 0) != 0), s, 0), "quarter turn"),
    ],
)
def test_the_symmetry_that_is_broken_is_named(kernel: Callable[[Any], Any], symmetry: str) -> None:
    samples = [*fields((8, 8))]
    report = check_kernel(kernel, samples, expect=("admissible",))
    broken = {s.name for s in torus(2) if not check_kernel(kernel, samples, symmetries=[s], expect=["admissible"]).ok}
    assert symmetry in broken
    fault = fault_of(report, "admissible")
    assert fault.symmetry in broken
    assert fault.sample.field.size <= 9


def test_symmetries_may_be_given_as_callables_or_by_name() -> None:
    def first_gone(s: Field) -> Field:
        s[0] = 0
        return s

    samples = [*fields((6, 4))]
    assert check_kernel(first_gone, samples, symmetries=[SIGN_FLIP, reflection(1), translation(1, 3)]).ok
    upside_down = fault_of(check_kernel(first_gone, samples, symmetries=[np.flipud]), "admissible")
    assert upside_down.symmetry == "flipud"
    named = fault_of(check_kernel(first_gone, samples, symmetries={"up": lambda s: np.roll(s, -1, 0)}), "admissible")
    assert named.symmetry == "up"
    assert named.what.startswith("after the up, site (")


def test_the_same_counterexample_is_found_every_time() -> None:
    first, second = (check_kernel(growing_majority, SAMPLES) for _ in range(2))
    assert first.as_json() == second.as_json()


def test_samples_that_the_kernel_cannot_take_are_left_out_when_shrinking() -> None:
    def picky(s: Field) -> Field:
        if s.shape != (8, 8):
            raise ValueError("only 8 x 8")
        return np.ones_like(s)

    fault = fault_of(check_kernel(picky, [*fields((8, 8))], symmetries=[SIGN_FLIP]), "no support creation")
    assert fault.sample.field.shape == (8, 8)
    assert not fault.sample.field.any()
    with pytest.raises(ValueError, match="only 8 x 8"):
        check_kernel(picky, [*fields((4, 4))])


def test_the_report_reads_well_and_is_a_document() -> None:
    report = check_kernel(growing_majority, [*fields((16, 16))], expect=("no support creation",))
    assert str(report) == (
        "growing_majority on 10 fields: FAILED\n"
        "  ternary              pass\n"
        "  deterministic        not claimed\n"
        "  same everywhere      not claimed\n"
        "  no support creation  fail\n"
        "      site (0, 1) has no support and becomes +1\n"
        "      for a field of shape (1, 2) with 1 supported site\n"
        "      field   gives   should\n"
        "      +.      ++      +.\n"
        "  keeps signs          not claimed\n"
        "  idempotent           not claimed\n"
        "  contractive          not claimed\n"
        "  admissible           not claimed"
    )
    document = json.loads(json.dumps(report.as_json(), allow_nan=False))
    assert document["ok"] is False
    assert [c["claim"] for c in document["claims"]] == list(CLAIMS)
    assert document["claims"][3] == {
        "claim": "no support creation",
        "outcome": "fail",
        "trials": 4,
        "counterexample": {
            "what": "site (0, 1) has no support and becomes +1",
            "symmetry": None,
            "site": [0, 1],
            "field": [[1, 0]],
            "inputs": [],
            "found": [[1, 1]],
            "expected": [[1, 0]],
        },
    }
    strange = check_kernel(lambda s: s * np.nan, SAMPLES)
    json.dumps(strange.as_json(), allow_nan=False)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (
            lambda: check_kernel(growing_majority, []),
            InputError,
            "there are no samples to check the kernel on. Fix: pass fields, for instance fields((16, 16)).",
        ),
        (
            lambda: check_kernel("ternary_majority", SAMPLES),
            InputError,
            "the kernel 'ternary_majority' needs a device to run on. Fix: pass device=dashi.open().",
        ),
        (
            lambda: check_kernel(growing_majority, SAMPLES, device=CPU),
            InputError,
            (
                "a callable brings its own device and scalars. "
                "Fix: leave `device` and `scalars` away, or pass a kernel's name instead of a callable."
            ),
        ),
        (
            lambda: check_kernel(growing_majority, SAMPLES, against=CPU),
            InputError,
            "a callable cannot be moved to another device. Fix: pass as `against` a callable that runs there.",
        ),
        (
            lambda: check_kernel(growing_majority, SAMPLES, expect=["contractive"]),
            InputError,
            "a kernel contracts in a defect, and none was given. Fix: pass defect=..., a number for a field.",
        ),
        (
            lambda: check_kernel(growing_majority, SAMPLES, expect=["same everywhere"]),
            InputError,
            "there is no second place to compare with. Fix: pass against=..., a device or a callable.",
        ),
        (
            lambda: check_kernel(growing_majority, SAMPLES, expect=["support"]),  # pyright: ignore[reportArgumentType]
            InputError,
            f"there is no claim 'support'. Fix: claims are: {', '.join(CLAIMS)}.",
        ),
        (
            lambda: check_kernel(growing_majority, [np.zeros(3)]),
            DTypeError,
            (
                "a ternary field holds integers, not float64. "
                "Fix: project real values with Carrier.admit(device, x, tau), or convert with .astype(np.int8)."
            ),
        ),
        (
            lambda: check_kernel("ternary_majorety", SAMPLES, device=CPU),
            KernelNotFoundError,
            None,
        ),
    ],
)
def test_what_cannot_be_checked_is_refused_with_a_fix(call: Any, kind: type[DashiError], message: str | None) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert "Fix: " in str(caught.value)
    assert message is None or str(caught.value) == message
