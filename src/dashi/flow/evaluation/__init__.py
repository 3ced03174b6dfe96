"""Does it generalise? Rollouts scored on data that no fit has seen, beside baselines."""

from dashi.flow.evaluation.evaluate import evaluate
from dashi.flow.evaluation.failures import classify
from dashi.flow.evaluation.files import load_evaluation, save_evaluation
from dashi.flow.evaluation.long_run import Climate, ClimateError, climate, climate_error
from dashi.flow.evaluation.overlap import Seen, require_disjoint
from dashi.flow.evaluation.perturb import perturbed
from dashi.flow.evaluation.quotient import QuotientError, Symmetries, quotient_error, symmetries_of
from dashi.flow.evaluation.residual import residual_line, score_residual
from dashi.flow.evaluation.result import THRESHOLDS, Evaluation, Failure, Line
from dashi.flow.evaluation.scores import largest_energy
from dashi.flow.evaluation.spread import Spread, gap_closed, spread, time_gained
from dashi.flow.evaluation.table import ScoreRow, ScoreTable, table

__all__ = [
    "THRESHOLDS",
    "Climate",
    "ClimateError",
    "Evaluation",
    "Failure",
    "Line",
    "QuotientError",
    "ScoreRow",
    "ScoreTable",
    "Seen",
    "Spread",
    "Symmetries",
    "classify",
    "climate",
    "climate_error",
    "evaluate",
    "gap_closed",
    "largest_energy",
    "load_evaluation",
    "perturbed",
    "quotient_error",
    "require_disjoint",
    "residual_line",
    "save_evaluation",
    "score_residual",
    "spread",
    "symmetries_of",
    "table",
    "time_gained",
]
