"""What a run folder keeps of decoded fields: measures, frames as Zarr, pictures and a film as PNG."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from dashi.core.observations.png import write_apng, write_png
from dashi.flow._fields import FieldStore, Variable, series_variable
from dashi.flow.decode.decoder import Decoded
from dashi.flow.decode.settings import Settings
from dashi.flow.equations import Flow
from dashi.flow.grid import Floats
from dashi.flow.proxy.schema import Schema
from dashi.io._files import write_atomic
from dashi.io._run_names import DECODED, FIELDS, FILM, PICTURES
from dashi.io.arrays import write_arrays

SOURCE: Final = "source_flow_"
"""Before the parameters of the flow that the states are of. Decoded fields are none of its own, and nothing may take
them for such: those have `flow_`."""
MOST_OF_FILM: Final = 200
_MILLISECONDS: Final = 100
_PAUSE: Final = 5.0
"""Seconds between two writes of the measures so far."""


class Album:
    """Takes what is decoded on the way; frames and pictures are on disk at once, measures every few seconds, the
    film at the end."""

    def __init__(
        self, folder: Path, schema: Schema, members: int, settings: Settings, interval: float | None,
        flow: Flow | None = None,
    ) -> None:  # fmt: skip
        self.folder, self.schema, self.members = folder, schema, members
        self._settings, self._interval, self._flow = settings, interval, flow
        self._decodes: list[tuple[int, Decoded]] = []
        self._film: list[Any] = []
        self._store: FieldStore | None = None
        self._written = time.monotonic()

    def add(self, step: int, decoded: Decoded) -> None:
        """Takes what was decoded after so many steps."""
        if decoded.fields is not None and decoded.mask is not None:
            self._frame(step, decoded.fields, decoded.mask)
        if decoded.images is not None:
            self._picture(step, decoded.images)
        # Large arrays are on disk, and not here. What was cut off above is as if it had never been.
        self._decodes.append((step, replace(decoded, fields=None, mask=None, images=None)))
        if time.monotonic() - self._written >= _PAUSE:
            self._measures()

    def _frame(self, step: int, fields: Floats, mask: Floats) -> None:
        n, steps = self.schema.n, np.array([*(at for at, _ in self._decodes), step])
        if self._store is None:
            self._store = self._new_store()
        index = len(steps) - 1
        self._store.frame("vorticity", index, fields.reshape(self.members, n, n))
        self._store.frame("mask", index, mask.reshape(self.members, n, n).astype(np.int64))
        self._store.series("step", steps)
        self._store.series("time", steps * (self._interval or 1.0))
        self._store.commit()

    def _new_store(self) -> FieldStore:
        n = self.schema.n
        shape = (self.members, n, n)
        axes = {
            axis: Variable((axis,), "float64", (n,), {"units": "L", "long_name": f"position along {axis}"})
            for axis in ("x", "y")
        }
        unit = "T" if self._interval else "1"
        dims, meaning = ("member", "y", "x"), {"units": "1/T", "long_name": "vorticity"}
        store = FieldStore(
            self.folder / FIELDS,
            {
                **axes,
                "time": series_variable("time", (), (), "float64", units=unit, long_name="time since z0"),
                "step": series_variable("time", (), (), "int64", units="1", long_name="steps of z"),
                "vorticity": Variable(dims, self._settings.dtype, shape, meaning, "time"),
                "mask": Variable(dims, "int64", shape, {"units": "1", "long_name": "ternary mask"}, "time"),
            },
            {
                "title": "fields decoded from a rollout of z",
                "residual": self._settings.residual,
                "gate": self._settings.gate,
                **{f"schema_{name}": value for name, value in self.schema.parameters.items()},
                **{f"{SOURCE}{name}": value for name, value in (self._flow.parameters if self._flow else {}).items()},
            },
        )  # fmt: skip
        line = np.arange(n) * (self.schema.length / n)
        store.put("x", line)
        store.put("y", line)
        return store

    def _picture(self, step: int, images: Floats) -> None:
        """Members side by side."""
        n = self.schema.n
        row: Any = np.ascontiguousarray(np.concatenate(list(images.reshape(self.members, n, n, 3)), axis=1))
        write_atomic(self.folder / PICTURES / f"step-{step:08d}.png", lambda file: write_png(file, row))
        if len(self._film) < MOST_OF_FILM:
            self._film.append(row)

    def close(self) -> None:
        """Writes the measures, and the film if there are pictures."""
        if self._film:
            film = self._film
            write_atomic(self.folder / FILM, lambda file: write_apng(file, film, len(film), _MILLISECONDS))
        if self._decodes:
            self._measures()

    def _measures(self) -> None:
        measures = {
            name: np.stack(
                [np.asarray(getattr(decoded, name)).reshape(self.members, -1) for _, decoded in self._decodes]
            )
            for name in ("energy", "enstrophy", "bands", "support")
        }
        squeezed = {name: values[..., 0] if values.shape[-1] == 1 else values for name, values in measures.items()}
        write_arrays(
            self.folder / DECODED, {"step": np.array([step for step, _ in self._decodes], np.int64), **squeezed}
        )
        self._written = time.monotonic()
