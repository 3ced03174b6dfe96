"""Kernels that bring their reference with them are held to it before a device first runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashi.errors import InputError, TwinError
from dashi.kernels.abi import Kernel

if TYPE_CHECKING:
    from dashi.runtime.device import Device


def check_on_first_use(device: Device, kernel: Kernel, variant: str) -> None:
    """Checks a variant of a kernel from text once on each device. NumPy runs the reference itself, the null device
    nothing: there is nothing to compare."""
    if kernel.binaries is None or device.info.type in ("reference", "null"):
        return
    mark = (kernel.binaries.key, id(kernel.reference), variant)
    if mark in device.checked:
        return
    device.checked.add(mark)  # before: the check binds the kernel, too
    try:
        check_kernel(device, kernel, (variant,))
    except BaseException:
        device.checked.discard(mark)
        raise


def check_kernel(device: Device, kernel: Kernel, variants: tuple[str, ...] = ()) -> None:
    """Runs the cases of a kernel, with inputs of normal size and awkward ones, and raises a TwinError for the first
    difference from its reference."""
    from dashi.runtime.conformance import QUICK, Trial, check_one, samples

    if kernel.evidence == "none":
        raise InputError(
            f"kernel {kernel.name!r} has no NumPy reference, so that there is nothing to check it against.",
            "pass reference=... to dashi.kernel.",
        )
    by_trial = samples(kernel)
    for variant in variants or kernel.dtypes:
        for case in range(len(kernel.cases)):
            for distribution in QUICK if kernel.portable else QUICK[:1]:
                result = check_one(device, kernel, Trial(variant, case, distribution), by_trial=by_trial)
                if not result.ok:
                    bits = f" (bits {result.got}, of the reference {result.expected})" if result.got else ""
                    error = TwinError(
                        f"kernel {kernel.name!r} on {device.info.name!r} is not its reference ({variant}, "
                        f"{result.shapes}, {distribution} values): {result.message}{bits}.",
                        "correct the text or the reference: the same operations in the same order.",
                    )
                    error.index, error.got, error.expected = result.index, result.got, result.expected
                    raise error
