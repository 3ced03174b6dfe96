"""What the main job has computed so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dashi.core.operators.operator import Operator
from dashi.core.rollouts.run import Run
from dashi.flow.evaluation import Evaluation
from dashi.flow.grid import Floats
from dashi.flow.proxy.model import Model
from dashi.flow.windows import Windows


@dataclass(eq=False)
class Results:
    """What the job has finished so far; owned by the job, filled stage by stage."""

    windows: dict[str, Windows] = field(default_factory=dict[str, Windows])
    models: dict[str, Model] = field(default_factory=dict[str, Model])
    z: Floats | None = None
    """States of the model left alone on the shown window, (frames, D)."""
    run: Run | None = None
    operator: Operator | None = None
    z0: Floats | None = None
    """What the certified rollout started from."""
    fields: Floats | None = None
    """Decoded of z, (frames, n, n)."""
    alone: Floats | None = None
    """Energy of the decoded fields."""
    proxy: Floats | None = None
    """Energy of the proxy of the reference, in the past and in the shown window."""
    decoder: dict[str, Any] = field(default_factory=dict[str, Any])
    test: Evaluation | None = None
    train: Evaluation | None = None
    checked: str = ""
    differs: int | None = None
    """The step after which NumPy has another hash, if there is one."""
    digest: str | None = None
    """The digest of the certificate."""
    notes: list[str] = field(default_factory=list[str])

    @property
    def shown(self) -> tuple[int, int]:
        """The windows of the test that are shown: the past, and the one that follows it."""
        return 0, 1
