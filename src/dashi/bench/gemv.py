"""What a product with packed weights takes, beside the time in which a device copies as many bytes."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Final

from dashi import kernels
from dashi.bench.kernels import Measurement
from dashi.bench.kernels import measure as measure_kernel
from dashi.bench.workloads import Workload
from dashi.errors import InputError, LimitError, NoResultError
from dashi.kernels.abi import Case, Kernel
from dashi.kernels.packed._block_format import BlockFormat
from dashi.kernels.packed._formats import block_format
from dashi.kernels.packed._products import product_case
from dashi.kernels.packed._tiles import tile_shape
from dashi.runtime import _bandwidth
from dashi.runtime.device import Device

CHECKED_ROWS: Final = 64
_MOST_BYTES: Final = 4 << 30


@dataclass(frozen=True)
class GemvTimes:
    """A product of `rows` rows of k numbers with n packed rows: microseconds (the median), the weights' bytes, the rate
    at which they were read as a part of the rate of copies (0 to 1, bytes read and written counted both), which
    results were compared with the reference beforehand, and the tuning of the kernel."""

    format: str
    rows: int
    n: int
    k: int
    us: float
    bytes: int
    of_copy_bandwidth: float
    checked: str
    tuning: str

    def as_dict(self) -> dict[str, object]:
        """What `dashi bench graph gemv --json` prints."""
        return asdict(self)


def measure(
    device: Device, format: str = "Q4_K", rows: int = 1, n: int = 4096, k: int = 4096, *, tunings: bool = False
) -> list[GemvTimes]:
    """Times `rows` rows of k numbers times the transpose of n rows in a packed format: with the tuning that the device
    chooses, or with every one that it allows, the fastest first. A wrong result is an error."""
    form = block_format(format)
    form.row_bytes(k)
    if min(rows, n, k) < 1:
        raise InputError(f"there is nothing to time in {rows} x {k} times {k} x {n}.", "use sizes of 1 or more.")
    if device.info.spec == "null":
        raise NoResultError("the null device computes nothing.", "use `device=` auto, cpu or vulkan:0.")
    _require_room(device, form, rows, n, k)
    case = product_case(form, (rows, k, n))
    names: list[str | None] = [*_kernel(form).tunings] if tunings else [None]
    measured = _timed(device, form, case, names)
    words = case.shapes["weights"]
    size = 4 * words[0] * words[1] * words[2]
    bandwidth = _bandwidth.measure(device).best
    listed: list[GemvTimes] = []
    for taken in measured:
        checked = taken.checked
        if checked.startswith("at "):
            # Too large for the reference: as many rows of x, which choose the shader, with fewer of the weights.
            (fewer,) = _timed(device, form, product_case(form, (rows, k, min(n, CHECKED_ROWS))), [taken.tuning])
            checked = fewer.checked if fewer.checked.startswith("at ") else f"at {fewer.workload.shapes}"
        assert taken.times is not None
        seconds = taken.times.median
        share = size / seconds / bandwidth
        listed.append(GemvTimes(form.name, rows, n, k, seconds * 1e6, size, share, checked, taken.tuning or ""))
    return sorted(listed, key=lambda times: times.us)


def _require_room(device: Device, form: BlockFormat, rows: int, n: int, k: int) -> None:
    """A LimitError, before any memory is taken, where x, the weights or the results are more than a device binds."""
    most = min(device.limits.storage_range, _MOST_BYTES)
    sizes = {"x": 4 * rows * k, "the weights": 4 * math.prod(tile_shape(form, k, n)), "the results": 4 * rows * n}
    for what, nbytes in sizes.items():
        if nbytes > most:
            raise LimitError(
                f"{rows} x {k} times {k} x {n} in {form.name}: {what} would have {nbytes} bytes, of {most} at most.",
                "use smaller sizes.",
            )


def _kernel(form: BlockFormat) -> Kernel:
    return kernels.get(f"matmul_{form.name.lower()}")


def _timed(device: Device, form: BlockFormat, case: Case, tunings: list[str | None]) -> list[Measurement]:
    """The kernel of a format on a case, checked and timed, or an error; tunings that the device has no room for are
    left out."""
    kernel = _kernel(form)
    done = [m for m in measure_kernel(device, Workload(kernel, "f32", case, 0), tunings) if not m.skipped]
    for taken in done:
        if taken.times is None:
            why, _, fix = taken.failed.partition("\nFix: ")
            raise InputError(
                f"{kernel.name} was not timed ({taken.tuning}): {why}", fix or "use another size, or another device."
            )
    if not done:
        raise InputError(f"{kernel.name} has no tuning that this device allows.", "use another device.")
    return done
