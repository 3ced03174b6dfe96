"""A run as a notebook shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashi.runtime._notebook import html_facts

if TYPE_CHECKING:
    from dashi.core.rollouts.run import Run


def run_html(run: Run) -> str:
    """How far a run came, what it left, and its last hash, as a table."""
    last = run.hashes[-1] if run.hashes else None
    rate = f" ({run.steps / run.seconds:,.0f} steps/s)" if run.seconds > 0 else ""
    facts = [
        ("steps", f"{run.steps:,}{', stopped before all were done' if run.stopped else ''}"),
        ("state", f"{run.state.dtype} {run.state.shape}"),
        ("time", f"{run.seconds:.3g} s{rate}"),
        ("observations", len(run.observations)),
        ("hashes", len(run.hashes)),
        *([("last hash", f"{last.digest} after step {last.step:,}")] if last else []),
    ]
    return html_facts("Run", facts)
