"""Long rollouts of compact states: operators, observers, certificates, the learner and the carrier.

    from dashi.core import Linear, rollout

These are the names for programs that use dashi. Each is imported when it is asked for, so that importing this package
costs nothing; inside dashi every module is imported from where it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashi._lazy import lazy_names

if TYPE_CHECKING:
    from dashi.core.carriers.carrier import Carrier as Carrier
    from dashi.core.carriers.check_defects import majority_energy as majority_energy
    from dashi.core.carriers.check_kernel import PROJECTOR as PROJECTOR
    from dashi.core.carriers.check_kernel import check_kernel as check_kernel
    from dashi.core.carriers.check_samples import fields as fields
    from dashi.core.certificates.certified_runs import certify as certify
    from dashi.core.certificates.inputs import load_operator as load_operator
    from dashi.core.certificates.inputs import save_operator as save_operator
    from dashi.core.learning.learner import fit_bands as fit_bands
    from dashi.core.learning.ridge import fit_pairs as fit_pairs
    from dashi.core.learning.ridge import fit_ridge as fit_ridge
    from dashi.core.learning.ridge import ridge as ridge
    from dashi.core.observations.observation import Observation as Observation
    from dashi.core.observations.png import write_png as write_png
    from dashi.core.observations.sheet import draw as draw
    from dashi.core.observations.sheet import example_sheet as example_sheet
    from dashi.core.observations.sheet import load_sheet as load_sheet
    from dashi.core.observations.sheet import save_sheet as save_sheet
    from dashi.core.observations.verdict import Verdict as Verdict
    from dashi.core.observations.verdict import verdict as verdict
    from dashi.core.operators.affine import Affine as Affine
    from dashi.core.operators.affine import Linear as Linear
    from dashi.core.operators.bands import Bands as Bands
    from dashi.core.operators.bands import graph as graph
    from dashi.core.operators.bands import path as path
    from dashi.core.operators.bands import ring as ring
    from dashi.core.operators.bands import tree as tree
    from dashi.core.operators.operator import Operator as Operator
    from dashi.core.operators.quadratic import Quadratic as Quadratic
    from dashi.core.operators.sparse import BlockSparse as BlockSparse
    from dashi.core.operators.sparse import Csr as Csr
    from dashi.core.rollouts.observer import Bound as Bound
    from dashi.core.rollouts.observer import Observer as Observer
    from dashi.core.rollouts.rollout import rollout as rollout
    from dashi.core.rollouts.run import Run as Run
    from dashi.core.traces.file import read_trace as read_trace
    from dashi.core.traces.queue import watch as watch
    from dashi.core.traces.trace import Trace as Trace
    from dashi.core.traces.trace import write_trace as write_trace

_MODULES = {
    "carriers.carrier": "Carrier",
    "carriers.check_defects": "majority_energy",
    "carriers.check_kernel": "PROJECTOR check_kernel",
    "carriers.check_samples": "fields",
    "certificates.certified_runs": "certify",
    "certificates.inputs": "load_operator save_operator",
    "learning.learner": "fit_bands",
    "learning.ridge": "fit_pairs fit_ridge ridge",
    "observations.observation": "Observation",
    "observations.png": "write_png",
    "observations.sheet": "draw example_sheet load_sheet save_sheet",
    "observations.verdict": "Verdict verdict",
    "operators.affine": "Affine Linear",
    "operators.bands": "Bands graph path ring tree",
    "operators.operator": "Operator",
    "operators.quadratic": "Quadratic",
    "operators.sparse": "BlockSparse Csr",
    "rollouts.observer": "Bound Observer",
    "rollouts.rollout": "rollout",
    "rollouts.run": "Run",
    "traces.file": "read_trace",
    "traces.queue": "watch",
    "traces.trace": "Trace write_trace",
}

if not TYPE_CHECKING:  # to a type checker a name that is not imported above is a mistake
    __all__, __getattr__, __dir__ = lazy_names(__name__, _MODULES)
