"""Arrays of the host that show memory of a device: that memory lives as long as they do, whatever is closed before."""

from __future__ import annotations

import itertools
import os
import threading
import weakref
from collections.abc import Callable
from typing import Final, Protocol

import numpy as np

from dashi.runtime._buffer import Buffer
from dashi.types import DType, HostArray, Shape

_NUMBERS: Final = itertools.count()


class Lender(Protocol):
    """Whoever keeps arrays that show memory, to hand out views of them again and again."""

    def take_back(self) -> None:
        """Forgets them: the device is closed."""
        ...


class Exports:
    """The arrays that show mapped memory of one device. NumPy arrays cannot be taken back: while one of them, or a view
    of it, is left, its buffer stays, and a device that is closed keeps its memory until then."""

    def __init__(self) -> None:
        self.lenders: weakref.WeakSet[Lender] = weakref.WeakSet()
        self._living: dict[int, tuple[weakref.ref[HostArray], Buffer]] = {}
        self._finish: Callable[[], None] | None = None
        self._lock = threading.RLock()
        self._process = os.getpid()

    def show(self, buffer: Buffer, shape: Shape, dtype: DType, *, writeable: bool) -> HostArray:
        """The bytes of a mapped buffer as a new array, which views of it lead back to."""
        view = buffer.view
        assert view is not None  # memory for the host is always mapped
        root: HostArray = np.frombuffer(view, dtype.stored, buffer.nbytes // dtype.size)
        if not writeable:
            root.flags.writeable = False
        number = next(_NUMBERS)
        self._living[number] = (weakref.ref(root, lambda _: self._forget(number)), buffer)
        return root.reshape(shape)

    def _forget(self, number: int) -> None:
        self._living.pop(number, None)
        finish = None
        with self._lock:
            if not self._living:
                finish, self._finish = self._finish, None
        if finish is not None and os.getpid() == self._process:  # a child process cannot use the handles
            finish()

    def _keep(self, number: int, root: HostArray | None) -> None:
        if root is not None:
            weakref.finalize(root, self._forget, number).atexit = False

    def when_none_is_left(self, finish: Callable[[], None]) -> None:
        """Calls a function once no array is left: now, or when the last one is forgotten."""
        for lender in list(self.lenders):
            lender.take_back()
        with self._lock:
            if self._living:
                self._finish = finish
                # From now on nobody else may know of this object: what is left keeps it.
                # Their numbers first: objects made on the way could start a collection, which takes some of them away.
                for number in list(self._living):
                    shown = self._living.get(number)
                    self._keep(number, None if shown is None else shown[0]())
                return
        finish()
