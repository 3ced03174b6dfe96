"""Files that are either the old ones or the new ones, for what can be built again: binaries of kernels, caches.

What a user's run leaves is written by `dashi.io._files`, which also locks, makes durable and takes over leftovers.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

SUFFIX = ".part"
"""What the names of half-written files end with."""


def replace_file(path: Path, data: bytes, *, mode: int = 0o600) -> None:
    """Puts a file with these bytes in the place of `path`. Whatever fails, the old one stays, and nothing beside it."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-", suffix=SUFFIX)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        if mode != 0o600:  # what mkstemp gives
            os.chmod(name, mode)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
