"""`measure_depth`: how deep the coherence of fields goes, against surrogates, on a device."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from dashi import kernels
from dashi.errors import InputError
from dashi.flow.annihilation import depth as depths
from dashi.flow.annihilation._meter import ScaleMeter, batch_size
from dashi.flow.annihilation._surrogates import SurrogateMaker
from dashi.flow.annihilation.depth import Band, Depth
from dashi.flow.annihilation.estimators import ESTIMATORS, Measured
from dashi.flow.annihilation.scales import centres, energy_tables, require_side
from dashi.flow.annihilation.settings import LEVEL, AnnihilationSettings
from dashi.flow.annihilation.survival import Survival, grid_levels, surviving_points
from dashi.flow.annihilation.trace import Filament, survival_curve, trace_filaments
from dashi.kernels._philox import philox
from dashi.kernels.expressions import arguments, square
from dashi.runtime.device import Device
from dashi.runtime.using import using_device
from dashi.types import HostArray

Floats = npt.NDArray[Any]
BOOTSTRAP_STREAM: Final = 6
_FIELDS: Final = 1 << 12


@dataclass(frozen=True, eq=False)
class EstimatorResult:
    """What one statistic says."""

    bands: tuple[Band, ...]
    depth: Depth
    resampled: tuple[float, ...]
    """K of every draw of the bootstrap."""


@dataclass(frozen=True, eq=False)
class Annihilation:
    """The depth of coherence of fields, by every estimator; `bands`, `depth` and `verdict` are of the one asked for."""

    settings: AnnihilationSettings
    n: int
    fields: int
    results: Mapping[str, EstimatorResult]
    survival: tuple[Survival, ...]
    grid_levels: int
    """K_grid, the largest of the fields'."""
    null_residual: float | None
    """Of the null `iaaft`: the part of the enstrophy whose power is not the data's, on average."""
    filaments: tuple[Filament, ...] | None
    """Of all fields, from the first tested scale on, where they were asked for."""
    hash: str
    """The digest of all that was measured of fields and surrogates: the same on every device."""

    @property
    def bands(self) -> tuple[Band, ...]:
        return self.results[self.settings.estimator].bands

    @property
    def depth(self) -> Depth:
        return self.results[self.settings.estimator].depth

    @property
    def verdict(self) -> str:
        """What the chosen statistic says, in a sentence."""
        name, null = self.settings.estimator, self.settings.null
        if 1.0 / (self.settings.surrogates + 1) > LEVEL:
            return f"undecided: {self.settings.surrogates} surrogates cannot reach 5 %"
        if self.depth.end == self.depth.first:
            more = "; above it at finer scales" if self.depth.second_crossing else ""
            return f"no {name} above the null {null!r} from the integral scale on{more}"
        if self.depth.censored:
            return f"{name} above the null {null!r} at every tested scale: K is at least {self.depth.octaves:.2f}"
        more = "; above it again at finer scales" if self.depth.second_crossing else ""
        return f"{name} above the null {null!r} for {self.depth.octaves:.2f} octaves, not at the next{more}"

    def as_json(self) -> dict[str, Any]:
        """Plain numbers, for `--json` and files."""
        curve = None if self.filaments is None else [asdict(point) for point in survival_curve(self.filaments)]
        return {
            "bands": [asdict(band) for band in self.bands],
            "K": asdict(self.depth),
            "K_grid": self.grid_levels,
            "survival": [asdict(s) | {"fraction": s.fraction} for s in self.survival],
            "filaments": None if self.filaments is None else {"count": len(self.filaments), "curve": curve},
            "verdict": self.verdict,
            "hash": self.hash,
            "n": self.n,
            "fields": self.fields,
            "null_residual": self.null_residual,
            "settings": asdict(self.settings),
            "estimators": {
                name: {"bands": [asdict(band) for band in r.bands], "K": asdict(r.depth)}
                for name, r in self.results.items()
            },
        }


def prepared_fields(fields: npt.ArrayLike, dtype: np.dtype[Any]) -> HostArray:
    """Fields (fields, n, n) without their means, their largest value 1; refused where they are no such fields."""
    values = np.asarray(fields)
    if values.dtype.kind not in "fiu":
        raise InputError(f"the field holds {values.dtype}, and no real numbers.", "save it as float32 or float64.")
    if values.ndim not in (2, 3) or values.shape[-1] != values.shape[-2] or not values.size:
        raise InputError(
            f"the field has shape {values.shape}.", "pass square periodic vorticity, (n, n) or (fields, n, n)."
        )
    require_side(values.shape[-1])
    several = values[None] if values.ndim == 2 else values
    if len(several) > _FIELDS:
        raise InputError(f"{len(several)} fields are too many at once.", f"pass up to {_FIELDS}.")
    prepared = np.empty(several.shape, dtype)
    for number, field in enumerate(several):
        plain = field.astype(np.float64)
        if not np.isfinite(plain).all():
            raise InputError("the field holds values that are not finite.", "remove NaN and infinities.")
        largest = float(np.abs(plain).max())
        scaled = plain / largest if largest > 0 else plain
        scaled = scaled - math.fsum(scaled.reshape(-1).tolist()) / scaled.size
        spread = float(np.abs(scaled).max())
        if spread <= 1e-12:
            raise InputError(f"field {number} is constant: it has no scales.", "pass a field that varies.")
        prepared[number] = scaled / spread
    return prepared


def measure_depth(
    fields: npt.ArrayLike,
    settings: AnnihilationSettings | None = None,
    *,
    device: Device | str = "cpu",
    progress: Callable[[int], None] | None = None,
    trace: bool = False,
    **options: Any,
) -> Annihilation:
    """How deep coherent signs go in periodic vorticity (n, n), or in several such fields of one kind (fields, n, n),
    against surrogates: `AnnihilationSettings`, or its fields by name. `progress` is called with the number of
    surrogates that were measured since. With `trace` the result has the filaments of the fields."""
    chosen = settings if settings is not None else AnnihilationSettings(**options)
    if settings is not None and options:
        raise InputError("settings were passed in two ways.", "pass `settings=` or their fields by name.")
    values = prepared_fields(fields, chosen.numpy_dtype)
    with using_device(device) as opened, DepthMeter(opened, values.shape[-1], chosen) as meter:
        return meter.measure_prepared(values, chosen.seed, progress, trace=trace)


class DepthMeter:
    """Measures many fields of n x n points with the same settings: arrays and programs on the device are made once.

    with DepthMeter(device, 128, settings) as meter:
        found = [meter.measure(field, seed=seed) for seed, field in enumerate(fields)]
    """

    def __init__(self, device: Device, n: int, settings: AnnihilationSettings) -> None:
        require_side(n)
        self.device, self.settings = device, settings
        self.n = n
        self.maker = SurrogateMaker(device, n, batch_size(n, settings, settings.surrogates), settings)
        self.meter = ScaleMeter(device, self.maker.modes, settings)
        side = next(side for side in (4, 5, 6, 3, 7, 2, 1) if n % side == 0)
        modes = self.maker.field_modes.reshape(1, n, n // 2 + 1, 2)
        self.field_meter = ScaleMeter(device, modes, settings, tiles=side * side)
        self._energy = device.empty((2,), settings.numpy_dtype)
        z, weight = arguments("z weight")
        tables = device.array(energy_tables(n).astype(settings.numpy_dtype)[..., None])
        summed = kernels.reduce_rows("sum", square(z) * weight, axes=(1, 2, 3))
        energy = device.bind(summed, modes, tables, out=self._energy)
        meter = self.field_meter
        self.load = device.program([*self.maker.loading, *meter.steps, *meter.state_steps, energy], label="field")
        self.surrogates = device.program([*self.maker.steps, *self.meter.steps], label="surrogates")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Gives the programs back; the arrays go with this object."""
        self.load.close()
        self.surrogates.close()

    def measure(
        self,
        fields: npt.ArrayLike,
        *,
        seed: int | None = None,
        progress: Callable[[int], None] | None = None,
        trace: bool = False,
    ) -> Annihilation:
        """What `measure_depth` gives for these fields, with another seed where one is passed."""
        values = prepared_fields(fields, self.settings.numpy_dtype)
        if values.shape[-1] != self.n:
            raise InputError(f"the field has shape {values.shape}.", f"pass fields of {self.n} x {self.n} points.")
        return self.measure_prepared(values, self.settings.seed if seed is None else seed, progress, trace=trace)

    def measure_prepared(
        self, values: HostArray, seed: int, progress: Callable[[int], None] | None = None, *, trace: bool = False
    ) -> Annihilation:
        """The same of fields that `prepared_fields` gave."""
        settings = replace(self.settings, seed=seed)
        digest = hashlib.sha256(repr(settings).encode())
        observed: list[Measured] = []
        null: list[Measured] = []
        states: list[HostArray] = []
        bands: list[HostArray] = []
        energies: list[Floats] = []
        residuals: list[float] = []
        for number, field in enumerate(values):
            self.maker.field[...] = field
            self.load.run()
            observed.append(self.field_meter.read())
            states.append(self.field_meter.states()[0])
            if trace:
                bands.append(self.field_meter.bands.numpy()[0])
            energies.append(self._energy.numpy().astype(np.float64))
            null.append(self.surrogates_of(number, seed, progress))
            if self.settings.null == "iaaft":
                residuals.append(_power_residual(observed[-1], null[-1]))
            for part in (observed[-1], null[-1]):
                for array in (part.counts, part.squares, part.fourths, part.strong):
                    digest.update(np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<")).tobytes())
        total = [math.fsum(float(e[part]) for e in energies) for part in (0, 1)]
        integral_k = total[0] / total[1]
        everything = _joined(observed)
        power = everything.pooled().squares[..., 0].sum(axis=0)
        tested = depths.tested_scales(self.n, integral_k, power, len(values))
        if not len(tested):
            raise InputError(
                f"no scale beyond the integral scale, k = {integral_k:.3g}, holds enough to be tested.",
                "pass a field that is resolved further, on more points, or several fields.",
            )
        results = {name: self._judged(name, everything, null, tested, integral_k, seed) for name in ESTIMATORS}
        residual = math.fsum(residuals) / len(residuals) if residuals else None
        survival = self._survival(states, results[self.settings.estimator].depth.first)
        levels = max(grid_levels(field, self.settings.tau) for field in values)
        filaments = None
        if trace:
            first = int(tested[0])
            filaments = tuple(f for s, b in zip(states, bands, strict=True) for f in trace_filaments(s, b, first))
        return Annihilation(
            settings, self.n, len(values), results, survival, levels, residual, filaments, digest.hexdigest()
        )

    def surrogates_of(self, number: int, seed: int, progress: Callable[[int], None] | None = None) -> Measured:
        """What is measured of all surrogates of the field that was loaded last, by its number."""
        parts: list[Measured] = []
        for first in range(0, self.settings.surrogates, self.maker.batch):
            some = min(self.maker.batch, self.settings.surrogates - first)
            self.maker.draw(number, first, seed)
            self.surrogates.run()
            parts.append(self.meter.read().members(slice(0, some)))
            if progress is not None:
                progress(some)
        return _joined(parts)

    def _judged(
        self,
        name: str,
        observed: Measured,
        null: list[Measured],
        tested: npt.NDArray[np.intp],
        integral_k: float,
        seed: int,
    ) -> EstimatorResult:
        of = ESTIMATORS[name].of
        drawn = _mean([of(part) for part in null])
        statistic = _mean(list(of(observed.pooled())))
        standard = depths.standardise(statistic, drawn, tested)
        chances = standard.chances(statistic)
        null_mean, null_sd = depths.moments(drawn)
        first, inside = int(tested[0]), set(tested.tolist())
        columns = zip(statistic.tolist(), null_mean.tolist(), null_sd.tolist(), chances.tolist(), strict=True)
        bands = tuple(
            Band(k, value, mean, sd, p if j in inside else None)
            for j, (k, (value, mean, sd, p)) in enumerate(zip(centres(self.n), columns, strict=True))
        )
        above = np.array([band.above for band in bands])
        end = depths.end_of(above, tested)
        again = [
            depths.octaves_to(self.n, depths.end_of(standard.chances(drawn) <= LEVEL, tested), first, integral_k)
            for drawn in self._resampled(of, observed, seed)
        ]
        low, high = depths.interval(again)
        octaves = depths.octaves_to(self.n, end, first, integral_k)
        crossings = tuple(j for j in tested.tolist() if j > end and above[j])
        depth = Depth(octaves, low, high, integral_k, first, end, end > int(tested[-1]), crossings)
        return EstimatorResult(bands, depth, tuple(again))

    def _resampled(self, of: Callable[[Measured], Floats], observed: Measured, seed: int) -> list[Floats]:
        """The statistic of fields drawn again from the fields, or of one field from its tiles."""
        count = len(observed.counts)
        drawn = count if count > 1 else observed.counts.shape[-2]
        words = philox(
            (np.arange(drawn)[None], np.arange(self.settings.resamples)[:, None], 0, BOOTSTRAP_STREAM),
            (seed, 0),
        )[0]
        picks = (words % np.uint32(drawn)).astype(np.intp)
        if count > 1:
            each = of(observed.pooled())
            return [_mean(list(each[pick])) for pick in picks]
        return [_mean(list(of(observed.chosen(pick).pooled()))) for pick in picks]

    def _survival(self, states: list[HostArray], first: int) -> tuple[Survival, ...]:
        counts = [surviving_points(s, first) for s in states]
        return tuple(
            Survival(k, sum(c[j][0] for c in counts), sum(c[j][1] for c in counts))
            for j, k in enumerate(centres(self.n)[first:])
        )


def _mean(values: list[Floats]) -> Floats:
    """The mean of arrays, in their order."""
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total / len(values)


def _joined(parts: list[Measured]) -> Measured:
    """Measurements one after another along their first axis."""
    return Measured(
        np.concatenate([p.counts for p in parts]), np.concatenate([p.squares for p in parts]),
        np.concatenate([p.fourths for p in parts]), np.concatenate([p.strong for p in parts]), parts[0].modes,
    )  # fmt: skip


def _power_residual(observed: Measured, null: Measured) -> float:
    """How much the enstrophy of the bands of surrogates differs from the data's, in parts of it, on average."""
    wanted = observed.pooled().squares[0, :, 0]
    gaps = [math.fsum(abs(row - wanted).tolist()) / math.fsum(wanted.tolist()) for row in null.squares[..., 0]]
    return math.fsum(gaps) / len(gaps)
