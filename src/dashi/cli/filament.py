"""`dashi filament`: flows as vortices that can be followed, counted and continued."""

from __future__ import annotations

from dashi.cli import _filament_code, _filament_run, _filament_track
from dashi.cli.help import App

app = App("filament", "Flows as vortices: move them, follow them, count them, pack them.")


for _part in (_filament_run, _filament_track, _filament_code):
    _part.register(app)
