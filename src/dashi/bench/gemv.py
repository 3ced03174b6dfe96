"""What a product with packed weights takes, beside the time in which a device copies as many bytes."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Final

from dashi import kernels
from dashi.bench.kernels import Measurement
from dashi.bench.kernels import measure as measure_kernel
from dashi.bench.workloads import Workload
from dashi.errors import InputError
from dashi.kernels.abi import Case
from dashi.kernels.packed._formats import BlockFormat, block_format
from dashi.kernels.packed._products import product_case
from dashi.runtime import _bandwidth
from dashi.runtime.device import Device

CHECKED_ROWS: Final = 64


@dataclass(frozen=True)
class GemvTimes:
    """A product of `rows` rows of k numbers with n packed rows: microseconds (the median), the weights' bytes, the rate
    at which they were read as a part of the rate of copies (0 to 1, bytes read and written counted both), and which
    results were compared with the reference beforehand."""

    format: str
    rows: int
    n: int
    k: int
    us: float
    bytes: int
    of_copy_bandwidth: float
    checked: str

    def as_dict(self) -> dict[str, object]:
        """What `dashi bench graph gemv --json` prints."""
        return asdict(self)


def measure(device: Device, format: str = "Q4_K", rows: int = 1, n: int = 4096, k: int = 4096) -> GemvTimes:
    """Times `rows` rows of k numbers times the transpose of n rows in a packed format. A wrong result is an error."""
    form = block_format(format)
    form.row_bytes(k)
    if min(rows, n, k) < 1:
        raise InputError(f"there is nothing to time in {rows} x {k} times {k} x {n}.", "use sizes of 1 or more.")
    case = product_case(form, (rows, k, n))
    taken = _timed(device, form, case)
    checked = taken.checked
    if checked.startswith("at "):
        # Too large for the reference: as many rows of x, which choose the shader, with fewer of the weights.
        fewer = _timed(device, form, product_case(form, (rows, k, min(n, CHECKED_ROWS))))
        checked = fewer.checked if fewer.checked.startswith("at ") else f"at {fewer.workload.shapes}"
    words = case.shapes["weights"]
    size = 4 * words[0] * words[1] * words[2]
    assert taken.times is not None
    seconds = taken.times.median
    share = size / seconds / _bandwidth.measure(device).best
    return GemvTimes(form.name, rows, n, k, seconds * 1e6, size, share, checked)


def _timed(device: Device, form: BlockFormat, case: Case) -> Measurement:
    """The kernel of a format on a case, checked and timed, or an error."""
    kernel = kernels.get(f"matmul_{form.name.lower()}")
    (taken,) = measure_kernel(device, Workload(kernel, "f32", case, 0))
    if taken.times is None:
        raise InputError(
            f"{kernel.name} was not timed: {taken.failed or taken.skipped}", "use another size, or another device."
        )
    return taken
