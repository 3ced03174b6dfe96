"""A thread that waits for timelines of a device and calls when they were reached: how the end of work becomes known to
other devices, and to queues that share one of the driver's."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from dashi.errors import ClosedError, DashiError
from dashi.runtime._vk_device import RawDevice

Done = Callable[[BaseException | None], None]
_SLICE_NS: Final = 1_000_000_000
_log = logging.getLogger("dashi")


class Relay:
    """The waiting thread of one device, started when it is first needed. It knows the raw device alone, so that it
    keeps no device alive."""

    def __init__(self, raw: RawDevice) -> None:
        self._raw = raw
        self._lock = threading.Lock()
        self._watches: list[tuple[int, int, Done]] = []
        self._thread: threading.Thread | None = None
        self._wake = raw.create_timeline()
        self._woken = 0
        self._stopped = False

    def watch(self, timeline: int, value: int, call: Done) -> None:
        """Calls, on the thread, once the timeline has reached the value; with an error if the device is lost or closed
        before."""
        with self._lock:
            refused = self._stopped
            if not refused:
                self._watches.append((timeline, value, call))
                if self._thread is None:
                    self._thread = threading.Thread(target=self._work, name="dashi-relay", daemon=True)
                    self._thread.start()
                else:
                    self._stir()
        if refused:
            call(_closed())

    def _stir(self) -> None:
        self._woken += 1
        self._raw.signal_timeline(self._wake, self._woken)

    def _work(self) -> None:
        while True:
            with self._lock:
                if self._stopped:
                    return
                least: dict[int, int] = {}
                for timeline, value, _ in self._watches:
                    least[timeline] = min(value, least.get(timeline, value))
                least[self._wake] = self._woken + 1
            try:
                self._raw.wait_any(least, _SLICE_NS)
                reached = {timeline: self._raw.timeline_value(timeline) for timeline in least}
            except DashiError as error:
                self._tell_all(error)
                return
            with self._lock:
                ready = [call for timeline, value, call in self._watches if reached.get(timeline, -1) >= value]
                self._watches = [w for w in self._watches if reached.get(w[0], -1) < w[1]]
            for call in ready:
                tell(call, None)

    def _tell_all(self, error: BaseException) -> None:
        with self._lock:
            self._stopped = True
            watches, self._watches = self._watches, []
        for _, _, call in watches:
            tell(call, error)

    def stop(self) -> None:
        """Ends the thread. Whoever still waits is told that the device is closed."""
        with self._lock:
            thread, self._thread = self._thread, None
            self._stopped = True
            if thread is not None:
                with suppress(DashiError):  # a lost device wakes the thread by itself
                    self._stir()
        if thread is not None and thread is not threading.current_thread():
            thread.join()
        self._tell_all(_closed())

    def close(self) -> None:
        """Ends the thread, and destroys what it woke up by."""
        self.stop()
        self._raw.destroy("Semaphore", self._wake)


def tell(call: Done, error: BaseException | None) -> None:
    """Calls; what fails there is not the business of whoever else waits."""
    try:
        call(error)
    except ClosedError:
        pass  # whoever wanted to know is gone
    except Exception:
        _log.exception("what was to happen at the end of submitted work failed")


def _closed() -> ClosedError:
    return ClosedError("the device was closed before its work was seen to end.", "wait for work before closing.")
