"""`dashi filament`: flows as vortices that can be followed, counted and continued."""

from __future__ import annotations

from dashi.cli import _filament_track
from dashi.cli.help import App

app = App("filament", "Flows as vortices: follow them, count them.")


@app.callback()
def _filament() -> None:
    """Keeps the verbs words of their own, also while there is only one."""


for _part in (_filament_track,):
    _part.register(app)
