"""A thread that waits for timelines of a device and calls when they were reached: how the end of work becomes known to
other devices, and to queues that share one of the driver's."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final

from dashi.errors import ClosedError, DashiError
from dashi.runtime._vk_device import RawDevice
from dashi.runtime._vk_record import RawWait

Done = Callable[[BaseException | None], None]
_SLICE_NS: Final = 1_000_000
_log = logging.getLogger("dashi")


class Relay:
    """The waiting thread of one device, started when it is first needed. It knows the raw device alone, so that it
    keeps no device alive.

    It waits for one timeline at a time, for a moment each: validation layers lose track of one that a thread waits for
    among others while another thread waits for it too."""

    def __init__(self, raw: RawDevice) -> None:
        self._raw = raw
        self._changed = threading.Condition()
        self._watches: list[tuple[int, int, Done]] = []
        self._waits: dict[int, RawWait] = {}
        self._thread: threading.Thread | None = None
        self._stopped = False

    def watch(self, timeline: int, value: int, call: Done) -> None:
        """Calls, on the thread, once the timeline has reached the value; with an error if the device is lost or closed
        before."""
        with self._changed:
            refused = self._stopped
            if not refused:
                self._watches.append((timeline, value, call))
                self._changed.notify()
                if self._thread is None:
                    self._thread = threading.Thread(target=self._work, name="dashi-relay", daemon=True)
                    self._thread.start()
        if refused:
            call(_closed())

    def _work(self) -> None:
        while (least := self._outstanding()) is not None:
            try:
                reached = {timeline: value for timeline, value in least.items() if self._wait(timeline, value)}
            except DashiError as error:
                self._tell_all(error)
                return
            with self._changed:
                ready = [call for timeline, value, call in self._watches if reached.get(timeline, -1) >= value]
                self._watches = [w for w in self._watches if reached.get(w[0], -1) < w[1]]
            for call in ready:
                tell(call, None)
            del ready  # nothing may live longer because the thread waits

    def _outstanding(self) -> dict[int, int] | None:
        """The next value of each timeline that somebody waits for, once there is one; None: the thread is to end."""
        with self._changed:
            self._changed.wait_for(lambda: self._watches or self._stopped)
            if self._stopped:
                return None
            least: dict[int, int] = {}
            for timeline, value, _ in self._watches:
                least[timeline] = min(value, least.get(timeline, value))
            return least

    def _wait(self, timeline: int, value: int) -> bool:
        if timeline not in self._waits:
            self._waits[timeline] = RawWait(self._raw, timeline)
        return self._waits[timeline].wait(value, _SLICE_NS)

    def fail(self, timeline: int, after: int, error: BaseException) -> None:
        """Calls, with the error, whoever waits for a later value of a timeline: it will not be reached."""
        with self._changed:
            told = [call for watched, value, call in self._watches if watched == timeline and value > after]
            self._watches = [w for w in self._watches if w[0] != timeline or w[1] <= after]
        for call in told:
            tell(call, error)

    def _tell_all(self, error: BaseException) -> None:
        with self._changed:
            self._stopped = True
            watches, self._watches = self._watches, []
        for _, _, call in watches:
            tell(call, error)

    def stop(self) -> None:
        """Ends the thread. Whoever still waits is told that the device is closed."""
        with self._changed:
            thread, self._thread = self._thread, None
            self._stopped = True
            self._changed.notify()
        if thread is not None and thread is not threading.current_thread():
            thread.join()
        self._tell_all(_closed())


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
