"""Files: arrays, operators and metrics, read safely and written all or nothing; run folders.

Publishing is one protocol, for files and folders alike:

1. What will be NAME is filled as `.NAME.part` beside it, under a lock that its process holds (`_parts`). A process that
   was killed leaves that one name, which nobody holds; whoever writes NAME next takes it over.
2. It is made durable and renamed into its place, and the folder is made durable (`_files.write_atomic` for a file,
   `_whole_folder.put` for a folder, where the old one steps aside for an instant and comes back if anything comes
   between). Whoever looks sees the old one or the new one.
3. A folder is ours by its mark, `.dashi-run`, its first file (`_run_mark`): it says which command wrote it, with which
   settings, what it left, and whether it was finished. Nothing is replaced but what a mark lists.
4. A run that takes long fills its folder in view, so that it can be resumed, each file by 1 and 2, and under the
   folder's lock (`_run_folder`); beside a finished run it works in `unfinished`, and takes that one's place at the end.
   What cannot be resumed, a demo or a fit, is kept beside its place under a name of its own as it grows
   (`OUT-unfinished`, `model.stopped.npz`), and is put there by 2.

Every file of a run folder is declared once, in `_run_names`. Caches and binaries, which can be built again, need no
lock and no durability: `dashi._atomic_file`.

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
