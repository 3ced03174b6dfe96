"""A vendor's compiler in a child process with bounded memory, asked for one module after another, each in bounded time.

One compiler took 24 GB for one kernel: what passes a limit is a finding of that module, and the next goes on in a new
child.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import tempfile
import time
from types import TracebackType
from typing import Any, Final, Self

from dashi.errors import DeviceNotFoundError
from dashi.lab.isa._vendors import Toolchain
from dashi.runtime._probe import device_info
from dashi.runtime.info import DeviceInfo

_START: Final = 60.0
_CHILD: Final = "from dashi.runtime._vk_inspection_trial import child; child()"


class _Ended(Exception):
    """The child ended, or was ended, without an answer; the text says how."""


class VendorCompiler:
    """Compiles modules to the text of their machine code; one caller at a time."""

    def __init__(self, toolchain: Toolchain, memory: int, timeout: float) -> None:
        self._toolchain, self._memory, self._timeout = toolchain, memory, timeout
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the compiler
        self._child: subprocess.Popen[bytes] | None = None
        self._rest = b""
        self.info = self._start()

    def compile(self, request: dict[str, Any]) -> tuple[str, str]:
        """The machine code of a module, or, behind an empty text, why there is none."""
        if self._child is None:
            self._start()
        try:
            answer = self._ask(request)
        except _Ended as ended:
            return "", str(ended)
        return answer.get("text", ""), answer.get("problem", "")

    def _start(self) -> DeviceInfo:
        self._log.seek(0)
        self._log.truncate()
        self._rest = b""
        self._child = subprocess.Popen(
            [*self._toolchain.command, "-c", _CHILD, str(self._memory), self._toolchain.debug_text],
            env={**os.environ, **self._toolchain.environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
        )
        answer: dict[str, Any]
        try:
            answer = self._answer(_START)
        except _Ended as ended:
            answer = {"problem": str(ended)}
        if "info" not in answer:
            self.close()
            raise DeviceNotFoundError(
                f"the compiler for {self._toolchain.gpu} does not start: {answer['problem'].rstrip('.')}.",
                "get the vendors' compilers: tests/drivers/fetch vendors, in a clone of the project.",
            )
        return device_info(answer["info"])

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._child is not None
        assert self._child.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # how it ended is told below
            self._child.stdin.write(json.dumps(request).encode() + b"\n")
            self._child.stdin.flush()
        return self._answer(self._timeout)

    def _answer(self, seconds: float) -> dict[str, Any]:
        assert self._child is not None
        assert self._child.stdout is not None
        deadline = time.monotonic() + seconds
        parts = [self._rest]
        while b"\n" not in parts[-1]:
            ready, _, _ = select.select([self._child.stdout], [], [], max(0.0, deadline - time.monotonic()))
            data = os.read(self._child.stdout.fileno(), 1 << 20) if ready else b""
            if not data:
                how = self._ending() if ready else f"took more than {seconds:g} s"
                self._end()
                raise _Ended(how)
            parts.append(data)
        line, _, self._rest = b"".join(parts).partition(b"\n")
        return json.loads(line)

    def _ending(self) -> str:
        """How a child ended by itself."""
        assert self._child is not None
        code = self._child.wait()
        self._log.seek(0)
        lines = self._log.read()[-2000:].decode(errors="replace").strip().splitlines()
        said = f" ({lines[-1].strip()})" if lines else ""
        return f"ended with exit code {code}, at most {self._memory / 2**30:g} GiB of memory allowed{said}"

    def _end(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            for pipe in (self._child.stdin, self._child.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()
        self._child = None

    def close(self) -> None:
        """Ends the child."""
        self._end()
        self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
