"""Files: arrays, operators and metrics, read safely and written all or nothing; run folders.

Each name is imported when it is asked for; inside dashi every module is imported from where it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashi._lazy import lazy_names

if TYPE_CHECKING:
    from dashi.io.arrays import file_digest as file_digest
    from dashi.io.arrays import read_array as read_array
    from dashi.io.arrays import read_arrays as read_arrays
    from dashi.io.arrays import write_array as write_array
    from dashi.io.arrays import write_arrays as write_arrays
    from dashi.io.metrics import Metrics as Metrics
    from dashi.io.metrics import read_metrics as read_metrics
    from dashi.io.metrics import write_metrics as write_metrics
    from dashi.io.operators import StoredOperator as StoredOperator
    from dashi.io.operators import read_operator as read_operator
    from dashi.io.operators import write_operator as write_operator

_MODULES = {
    "arrays": "file_digest read_array read_arrays write_array write_arrays",
    "metrics": "Metrics read_metrics write_metrics",
    "operators": "StoredOperator read_operator write_operator",
}

if not TYPE_CHECKING:  # to a type checker a name that is not imported above is a mistake
    __all__, __getattr__, __dir__ = lazy_names(__name__, _MODULES)
