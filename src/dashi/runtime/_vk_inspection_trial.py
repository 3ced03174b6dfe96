"""What runs in a child process: a driver's compiler, which is asked for the machine code of one module after another.
A compiler that crashes, hangs or takes all memory takes only the child with it."""

from __future__ import annotations

import base64
import contextlib
import ctypes
import json
import os
import sys
import tempfile
from typing import Any

from dashi.errors import DashiError, DeviceNotFoundError
from dashi.runtime._instance import Instance
from dashi.runtime._vk_executable import InspectedDevice, create_inspected_device


def child() -> None:
    """Answers with the first device of the drivers, then with the machine code of every module that is asked for."""
    memory, debug_text = int(sys.argv[1]), sys.argv[2]
    # Drivers write to stdout as they like: they get stderr instead, and the answers go out alone.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    printed = _Printed(debug_text) if debug_text else None
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    try:
        device, about = _open()
    except DashiError as error:
        _answer(answers, {"problem": error.what})
        return
    _answer(answers, {"info": about})
    for line in sys.stdin:
        _answer(answers, _compile(device, json.loads(line), printed))


def _answer(answers: Any, document: dict[str, Any]) -> None:
    answers.write(json.dumps(document) + "\n")
    answers.flush()


def _open() -> tuple[InspectedDevice, dict[str, Any]]:
    instance = Instance(validation=False)
    devices = instance.devices()
    if not devices:
        raise DeviceNotFoundError("the driver has no device that can run dashi", "choose another driver.")
    physical, info = devices[0]
    family = next(i for i, queue in enumerate(info.queues) if queue.compute)
    return create_inspected_device(instance.fns, physical, info.extensions, family), info.as_json()


class _Printed:
    """What a driver prints about a pipeline, where it offers no other text."""

    def __init__(self, debug_text: str) -> None:
        variable, _, value = debug_text.partition("=")
        os.environ[variable] = value
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - ends with the process
        os.dup2(self._file.fileno(), 1)

    def clear(self) -> None:
        self.text()

    def text(self) -> str:
        """What was printed since the last time."""
        ctypes.CDLL(None).fflush(None)
        self._file.seek(0)
        text = self._file.read().decode(errors="replace")
        self._file.seek(0)
        self._file.truncate()
        return text


def _compile(device: InspectedDevice, request: dict[str, Any], printed: _Printed | None) -> dict[str, Any]:
    if printed is not None:
        printed.clear()
    try:
        pipeline = device.create_pipeline(
            base64.b64decode(request["words"]),
            request["buffers"],
            request["push_bytes"],
            request["spec"],
            0,  # no cache: what comes from one has no text
            full_subgroups=request["full_subgroups"],
        )
    except DashiError as error:
        return {"problem": error.what}
    try:
        texts = [printed.text()] if printed is not None else list(device.representations(pipeline).values())
        return {"text": texts[-1] if texts else ""}
    finally:
        device.destroy("Pipeline", pipeline.pipeline)
        device.destroy("PipelineLayout", pipeline.layout)
        device.destroy("DescriptorSetLayout", pipeline.set_layout)
