"""The Fourier transforms of a decode: on its own device, or on another one, which takes and gives values through the
host. They are portable kernels, so the bits are the same."""

from __future__ import annotations

from typing import Any

import numpy as np

from dashi.kernels.fft._roots import real_table, table
from dashi.runtime.array import Array
from dashi.runtime.device import AnyStep, Device, Program
from dashi.types import HostArray


class FieldTransforms:
    """Binds transforms between fields (members, n, n) of one element type and their half spectra on `device`. Those are
    computed on `elsewhere` where that is another device."""

    def __init__(self, device: Device, n: int, dtype: np.dtype[Any], elsewhere: Device | None = None) -> None:
        self.device, self._n = device, n
        self._computes = elsewhere or device
        tables = (real_table(n, dtype), table(n, dtype))
        self._twiddles = tuple(self._computes.array(one) for one in tables)
        self._recorded: dict[str, tuple[Program, Array, Array]] = {}
        """By kernel: the program on the other device, what it reads and what it fills. Runs of a decode follow each
        other, so one of each will do."""

    def back(self, modes: Array, field: Array) -> AnyStep:
        """Fills a field from modes (members, n, n/2 + 1, 2)."""
        return self._step("irfft2", modes, field, {})

    def forward(self, field: Array, modes: Array) -> AnyStep:
        """Fills the modes of a field, which are its Fourier coefficients."""
        n = self._n
        return self._step("rfft2", field, modes, {"modes": n // 2 + 1, "scale": 1.0 / (n * n)})

    def close(self) -> None:
        """Frees what was recorded on the other device."""
        for program, _, _ in self._recorded.values():
            program.close()
        self._recorded.clear()

    def _step(self, kernel: str, source: Array, target: Array, scalars: dict[str, Any]) -> AnyStep:
        if self._computes is self.device:
            return self.device.bind(kernel, source, *self._twiddles, out=target, **scalars)
        if kernel not in self._recorded:
            there = self._computes
            values, out = (there.empty(one.shape, one.dtype) for one in (source, target))
            step = there.bind(kernel, values, *self._twiddles, out=out, **scalars)
            program = there.program([step], label=f"decode {kernel}", feed=[values], fetch=[out])
            self._recorded[kernel] = program, values, out
        program, values, out = self._recorded[kernel]

        def transform(host: HostArray) -> HostArray:
            program.run(feed={values: host})
            return program.fetched(out)

        return self.device.host_step(transform, [source], [target], name=kernel)
