"""The laboratory: whole jobs as functions, each of a frozen request, that place a device, run, certify, measure and
leave a folder of files. What a command of `dashi` does, a function here does; commands only ask and print.

    from dashi import lab
    result = lab.rollout(lab.RolloutRequest(operator=Linear(A), z0=z0, steps=1000), device="cpu", out="runs/x")

Each name is imported when it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashi._lazy import lazy_names

if TYPE_CHECKING:
    from dashi.lab.demos.main_job import DemoRequest as DemoRequest
    from dashi.lab.demos.main_job import DemoResult as DemoResult
    from dashi.lab.demos.main_job import demo as demo
    from dashi.lab.demos.setting import FULL as FULL
    from dashi.lab.demos.setting import QUICK as QUICK
    from dashi.lab.demos.wave import WaveRequest as WaveRequest
    from dashi.lab.demos.wave import WaveResult as WaveResult
    from dashi.lab.demos.wave import demo_wave as demo_wave
    from dashi.lab.events import SILENT as SILENT
    from dashi.lab.events import Events as Events
    from dashi.lab.health import Health as Health
    from dashi.lab.health import examine as examine
    from dashi.lab.rollout_setup import RolloutRequest as RolloutRequest
    from dashi.lab.rollouts import RolloutResult as RolloutResult
    from dashi.lab.rollouts import rollout as rollout
    from dashi.lab.verification import Verification as Verification
    from dashi.lab.verification import VerifyRequest as VerifyRequest
    from dashi.lab.verification import verify as verify

_MODULES = {
    "demos.main_job": "DemoRequest DemoResult demo",
    "demos.setting": "FULL QUICK",
    "demos.wave": "WaveRequest WaveResult demo_wave",
    "events": "SILENT Events",
    "health": "Health examine",
    "rollout_setup": "RolloutRequest",
    "rollouts": "RolloutResult rollout",
    "verification": "Verification VerifyRequest verify",
}

if not TYPE_CHECKING:  # to a type checker a name that is not imported above is a mistake
    __all__, __getattr__, __dir__ = lazy_names(__name__, _MODULES)
