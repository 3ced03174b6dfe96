"""A new kernel folder that builds and passes its tests as it stands: the place to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from dashi.errors import KernelError
from dashi.kernels._registry import ROOT, Registry
from dashi.kernels._validate import check_name

_COMP: Final = """\
// One element of the result, from one of each input. Scalars are the names that kernel.py declares; T is float or
// double. Portable maths: canon() of scalars, mul() instead of *, and the functions of portable.glsl instead of GLSL's.
T apply(T x) {
    return mul(canon(a), x);
}
"""

_PY: Final = '''\
"""{name}: result = a x. Replace the formula here and in kernel.comp."""

import numpy as np

from dashi.kernels.abi import Scalar
from dashi.kernels.patterns import elementwise
from dashi.kernels.portable import canon, mul
from dashi.types import HostArray


def reference(x: HostArray, a: float) -> HostArray:
    """The same bits as the shader: the same operations in the same order."""
    return canon(mul(canon(np.asarray(a, dtype=x.dtype)), canon(x)))


KERNEL = elementwise(
    summary="a x",
    inputs=("x",),
    scalars=(Scalar("a", default=1.0, doc="factor"),),
    flops=1,  # per element
    examples=({{"a": 2.0}}, {{"a": -0.3}}),  # scalars for the test cases, in turn
    reference=reference,
)
'''


def new(name: str, where: str | Path | None = None, family: str = "user") -> Path:
    """Write a kernel folder `where`/name (without `where`: in the project, in that family) and return its path; a
    `where` that ends in that name already is the kernel's folder itself.

    It is not built yet: `build(get(name))` does that, or `add(folder)` for a folder outside the project.
    """
    check_name(name)
    check_name(family)
    if Registry().taken(name):
        raise KernelError(f"there is a kernel {name!r} already.", "choose another name.")
    parent = ROOT / family if where is None else Path(where)
    folder = parent if where is not None and parent.name == name else parent / name
    try:
        folder.mkdir(parents=True)
        (folder / "kernel.comp").write_text(_COMP, encoding="utf-8")
        (folder / "kernel.py").write_text(_PY.format(name=name), encoding="utf-8")
    except FileExistsError as error:
        raise KernelError(f"{folder} exists already.", "choose another name or folder.") from error
    except OSError as error:
        raise KernelError(f"{folder} cannot be written: {error.strerror}.", "choose a folder you may write.") from error
    return folder
