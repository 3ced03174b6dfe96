"""Kernels held against their references: a row for each device and kernel, and every trial that failed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from dashi import kernels, lab
from dashi.lab import kernel_checks
from dashi.runtime.conformance import Result, check, trials


def test_every_device_and_kernel_has_a_row_and_every_trial_is_counted(heard: Any) -> None:
    asked = [kernels.get(name) for name in ("axpy", "reduce_sum")]
    checks = lab.check_kernels(asked, devices=["cpu", "null"], quick=True, events=heard)
    assert checks.ok
    assert [(row["device"], row["kernel"]) for row in checks.rows] == [
        ("cpu", "axpy"), ("cpu", "reduce_sum"), ("null", "axpy"), ("null", "reduce_sum"),
    ]  # fmt: skip
    assert [row["computed"] for row in checks.rows] == [True, True, False, False]
    total = 2 * sum(1 for kernel in asked for _ in trials(kernel, quick=True))
    assert heard.parts == [("checking", total, total)]
    assert sum(row["trials"] for row in checks.rows) == total


def test_failures_and_what_is_missing_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    def spoilt(*asked: Any, **named: Any) -> Iterator[Result]:
        for number, result in enumerate(check(*asked, **named)):
            yield replace(result, ok=number != 0, skipped="fp64" if number == 1 else "")

    monkeypatch.setattr(kernel_checks, "check", spoilt)
    checks = lab.check_kernels([kernels.get("axpy")], devices=["cpu"], quick=True)
    (row,) = checks.rows
    assert (checks.ok, row["failed"], row["skipped"]) == (False, 1, 1)
    assert row["passed"] == row["trials"] - 2
    assert [failure["device"] for failure in checks.failures] == ["cpu"]
    assert row["missing"] == [f"{checks.failures[0]['variant']}: fp64"]
