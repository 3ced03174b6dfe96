"""What frames cost a simulation: the run without frames, the same bytes written alone, and the run with frames, in one
process; and why the solver's queue was idle, by stamps of the device.

    python benchmarks/frames.py --device vulkan:0 --n 1024 --steps 4000 --frame-every 10
    python benchmarks/frames.py --device vulkan:0 --n 256 --steps 400 --json
    python benchmarks/frames.py --live                      # the same run, seen by somebody who asks all the time
    python benchmarks/frames.py --decode --n 128            # decodes behind the steps, beside them, and none

The aim is 1.05 for the run with frames over the longer of the two others. Bytes alone are files of the same sizes,
written one after another and made durable at the end, as a run leaves them.

A block of steps is submitted while the one before it runs. Where it is not, the queue is idle, and the reason is what
the thread of the run did meanwhile: the innermost of the functions below. `between blocks` is idle time of a queue that
had its next block already.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import json
import os
import shutil
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

FIELDS = ("vorticity", "streamfunction", "velocity_x", "velocity_y")
"""Three fields: vorticity, streamfunction, and velocity with both parts."""
REASONS = {
    "recording programs": "dashi.core.rollouts._engine:DeviceEngine._record",
    "taking in what came back": "dashi.core.rollouts._engine:DeviceEngine.collect",
    "submitting": "dashi.core.rollouts._engine:DeviceEngine.submit",
    "taking in looks": "dashi.core.rollouts._loop:Loop._accept",
    "handing out frames": "dashi.flow._frames:Frames.hand_out",
    "waiting for the writer": "dashi.io._writer:Writer.put",
    "reading states back": "dashi.core.rollouts._loop:Loop._result",
}
"""Functions of the thread that submits, by what the queue waits for while they go on."""
BESIDE = {
    "writing frames": "dashi.flow._trajectory:TrajectoryWriter._frame",
    "checkpoints": "dashi.flow._trajectory:TrajectoryWriter._keep",
}
"""Functions of the thread that writes."""


class Watch:
    """Blocks of the solver by the device's stamps, and what the thread of the run did, by the same clock."""

    def __init__(self) -> None:
        self.blocks: list[tuple[int, int, int]] = []
        """When each was submitted, began and ended."""
        self.spans: list[tuple[int, int, str]] = []
        self.beside: dict[str, float] = {}
        self._undo: list[tuple[Any, str, Any]] = []

    def __enter__(self) -> Watch:
        for name, place in (REASONS | BESIDE).items():
            self._replace(place, lambda old, name=name: self._timed(name, old))
        engine = importlib.import_module("dashi.core.rollouts._engine").DeviceEngine
        self._replace("dashi.core.rollouts._engine:DeviceEngine._record", self._stamped)
        submit, collect = engine.submit, engine.collect
        stamps: dict[int, int] = {}

        def submitting(this: Any, block: Any, strategy: Any) -> Any:
            flight = submit(this, block, strategy)
            stamps[id(flight)] = time.perf_counter_ns()
            return flight

        def collecting(this: Any, flight: Any) -> Any:
            result = collect(this, flight)
            interval = flight.recorded.program.interval()
            if interval is not None:
                self.blocks.append((stamps.pop(id(flight)), *interval))
            return result

        self._set(engine, "submit", submitting)
        self._set(engine, "collect", collecting)
        return self

    def __exit__(self, *_: object) -> None:
        for owner, name, old in reversed(self._undo):
            setattr(owner, name, old)

    def idle(self) -> dict[str, float]:
        """Seconds between the first and the last block in which no block ran, by reason."""
        reasons: dict[str, float] = {}
        blocks = sorted(self.blocks, key=lambda block: block[1])
        for (_, _, ended), (submitted, began, _) in itertools.pairwise(blocks):
            if began <= ended:
                continue
            late = min(max(submitted, ended), began)
            for reason, seconds in self._host(ended, late).items():
                reasons[reason] = reasons.get(reason, 0.0) + seconds
            reasons["between blocks"] = reasons.get("between blocks", 0.0) + (began - late) * 1e-9
        return dict(sorted(reasons.items(), key=lambda pair: -pair[1]))

    def busy(self) -> float:
        """Seconds in which blocks ran."""
        return sum(ended - began for _, began, ended in self.blocks) * 1e-9

    def _host(self, begin: int, end: int) -> dict[str, float]:
        """What the thread of the run did in a stretch of time: every moment counts for the innermost function."""
        inside = [(max(a, begin), min(b, end), name) for a, b, name in self.spans if a < end and b > begin]
        edges = sorted({begin, end, *(t for a, b, _ in inside for t in (a, b))})
        reasons: dict[str, float] = {}
        for a, b in itertools.pairwise(edges):
            holding = [(y - x, name) for x, y, name in inside if x <= a and y >= b]
            name = min(holding)[1] if holding else "other work of the thread"
            reasons[name] = reasons.get(name, 0.0) + (b - a) * 1e-9
        return reasons

    def _stamped(self, record: Callable[..., Any]) -> Callable[..., Any]:
        """Programs of blocks that know when they ran."""

        def recording(this: Any, *words: Any) -> Any:
            device, program = this.device, this.device.program
            device.program = lambda *steps, **options: program(*steps, timed=True, **options)
            try:
                return record(this, *words)
            finally:
                del device.program

        return recording

    def _timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*words: Any, **options: Any) -> Any:
            began = time.perf_counter_ns()
            try:
                return function(*words, **options)
            finally:
                ended = time.perf_counter_ns()
                if threading.current_thread() is threading.main_thread():
                    self.spans.append((began, ended, name))
                else:
                    self.beside[name] = self.beside.get(name, 0.0) + (ended - began) * 1e-9

        return timed

    def _replace(self, place: str, by: Callable[[Any], Any]) -> None:
        module, _, path = place.partition(":")
        owner: Any = importlib.import_module(module)
        *owners, last = path.split(".")
        for one in owners:
            owner = getattr(owner, one)
        self._set(owner, last, by(getattr(owner, last)))

    def _set(self, owner: Any, name: str, value: Any) -> None:
        self._undo.append((owner, name, getattr(owner, name)))
        setattr(owner, name, value)


def write_alone(folder: Path, files: int, nbytes: int) -> float:
    """Seconds in which so many files of so many bytes are written and made durable."""
    data = np.random.default_rng(0).bytes(nbytes)
    folder.mkdir()
    began = time.perf_counter()
    handles: list[int] = []
    for number in range(files):
        handle = os.open(folder / str(number), os.O_WRONLY | os.O_CREAT)
        view = memoryview(data)
        while view:
            view = view[os.write(handle, view) :]
        handles.append(handle)
        if len(handles) == 256:
            _sync(handles)
    _sync(handles)
    return time.perf_counter() - began


def _sync(handles: list[int]) -> None:
    for handle in handles:
        os.fsync(handle)
        os.close(handle)
    handles.clear()


def measure(asked: argparse.Namespace, root: Path) -> dict[str, Any]:
    """The three measurements, repeated in turns; the best of each."""
    import dashi
    from dashi.flow import Flow
    from dashi.lab import SimulateRequest, simulate

    fields = tuple(asked.field or FIELDS)
    flow = Flow(asked.n, nu=2e-3 * (128 / asked.n) ** 2, dt=min(0.01, 0.64 / asked.n), dtype=asked.dtype)
    frames = asked.steps // asked.frame_every + 1
    nbytes = asked.n * asked.n * np.dtype(asked.dtype).itemsize
    without, alone, with_frames = [], [], []
    live, drawn, hashes, best = [], 0, set(), None
    with dashi.open(asked.device) as device:

        def run(frame_every: int, steps: int = asked.steps, view: Any = None) -> tuple[float, Any]:
            out = root / "run"
            request = SimulateRequest(
                flow=flow, steps=steps, frame_every=frame_every, fields=fields, look_every=max(1, steps // 10),
                hash_every=steps,
            )  # fmt: skip
            began = time.perf_counter()
            done = simulate(request, device=device, out=out, live=view)
            took = time.perf_counter() - began
            shutil.rmtree(out)
            return took, done

        run(asked.frame_every, min(asked.steps, 4 * asked.frame_every))  # compiles what has to be
        for number in range(asked.repeats):
            took, done = run(0)
            without.append(took)
            hashes.add(done.hashes[-1].digest)
            alone.append(write_alone(root / "alone", frames * len(fields), nbytes))
            shutil.rmtree(root / "alone")
            with Watch() as watch:
                took, done = run(asked.frame_every)
            with_frames.append(took)
            hashes.add(done.hashes[-1].digest)
            if best is None or took < best[0]:
                best = took, watch
            if asked.live:
                took, drawn, digest = seen(run, asked.frame_every)
                live.append(took)
                hashes.add(digest)
            row = ", ".join(f"{times[-1]:.3f}" for times in (without, alone, with_frames))
            print(f"  {number + 1} of {asked.repeats}: {row} s", file=sys.stderr, flush=True)
        name = device.info.name
    assert best is not None
    watch = best[1]
    floor = max(min(without), min(alone))
    return {
        "device": name, "n": asked.n, "dtype": asked.dtype, "steps": asked.steps, "frame_every": asked.frame_every,
        "fields": list(fields), "bytes": frames * len(fields) * nbytes, "same_bits": len(hashes) == 1,
        "without_s": min(without), "alone_s": min(alone), "frames_s": min(with_frames),
        "ratio": min(with_frames) / floor, "queue_busy_s": watch.busy(), "queue_idle_s": watch.idle(),
        "writing_thread_s": watch.beside,
        **({"live_s": min(live), "live_ratio": min(live) / min(with_frames), "pictures": drawn} if live else {}),
    }  # fmt: skip


def seen(run: Callable[..., tuple[float, Any]], frame_every: int) -> tuple[float, int, str]:
    """The run with frames while somebody asks its page for pictures without a pause; how many there were; its hash."""
    from dashi.report import LivePage, LiveView

    view, over, pictures = LiveView(), threading.Event(), 0

    def ask(url: str) -> None:
        nonlocal pictures
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        while not over.is_set():
            for name in ("state.json", "field.png", "sheet.png"):
                try:
                    with opener.open(url + name, timeout=10) as answer:
                        pictures += answer.read(4) == b"\x89PNG"
                except OSError:
                    continue
            over.wait(0.05)

    with LivePage(view) as page:
        asking = threading.Thread(target=ask, args=(page.url,))
        asking.start()
        try:
            took, done = run(frame_every, view=view)
        finally:
            over.set()
            asking.join()
    return took, pictures, done.hashes[-1].digest


def measure_decodes(asked: argparse.Namespace, root: Path) -> dict[str, Any]:
    """Seconds of the same rollout of z without decodes, with decodes behind the steps, and beside them."""
    import dashi
    from dashi.core.rollouts.rollout import rollout
    from dashi.flow.decode import Decoder, Decodes
    from dashi.flow.proxy import Schema

    schema = Schema(asked.n, min(8.0, asked.n / 8))
    z0 = np.linspace(-1, 1, schema.size).astype(np.float32)
    turn, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((schema.size, schema.size)))
    operator = dashi.Linear(turn.astype(np.float32))
    rows: dict[str, list[tuple[float, float]]] = {}
    """Seconds of the run, and how many of them the steps waited."""
    with dashi.open(asked.device, queues=2) as device, dashi.open("cpu") as host:
        ways: dict[str, Callable[[], Decoder] | None] = {
            "none": None,
            "behind": lambda: Decoder(schema, device),
            "queue 1": lambda: Decoder(schema, device, queue=1),
            "cpu": lambda: Decoder(schema, host),
        }
        for _ in range(asked.repeats + 1):
            for name, make in ways.items():
                decoder = make() if make else None
                decodes = [Decodes(decoder, asked.frame_every, "snapshots")] if decoder else []
                began = time.perf_counter()
                rollout(operator, z0, asked.steps, device=device, observers=decodes, hash_every=asked.steps)
                took = time.perf_counter() - began
                rows.setdefault(name, []).append((took, decodes[0].waited if decodes else 0.0))
                if decoder is not None:
                    decoder.close()
        name = device.info.name
    return {
        "device": name, "n": asked.n, "D": schema.size, "steps": asked.steps, "decode_every": asked.frame_every,
        "seconds": {name: min(times[1:])[0] for name, times in rows.items()},
        "steps_waited_s": {name: min(times[1:])[1] for name, times in rows.items()},
    }  # fmt: skip


def show(result: dict[str, Any]) -> None:
    """The result for people."""
    told = result.get
    if "seconds" in result:
        print(f"{told('device')}: {told('steps')} steps of D = {told('D')}, decoded every {told('decode_every')}")
        for name, seconds in result["seconds"].items():
            print(f"  {name:10} {seconds:8.3f} s, the steps waited {result['steps_waited_s'][name]:.3f} s")
        return
    print(f"{told('device')}: {told('steps')} steps of n = {told('n')}, a frame every {told('frame_every')}")
    print(f"  {'without frames':26}{result['without_s']:8.3f} s")
    print(f"  {'the same bytes alone':26}{result['alone_s']:8.3f} s ({result['bytes'] / 2**20:,.0f} MiB)")
    print(f"  {'with frames':26}{result['frames_s']:8.3f} s, {result['ratio']:.3f} x the longer of the two")
    if "live_s" in result:
        pictures = f"({result['pictures']} pictures)"
        print(f"  {'with frames, looked at':26}{result['live_s']:8.3f} s, {result['live_ratio']:.3f} x that {pictures}")
    print(f"  the same bits: {result['same_bits']}")
    print(f"  {'the solver at work':26}{result['queue_busy_s']:8.3f} s; its queue was idle:")
    for reason, seconds in result["queue_idle_s"].items():
        print(f"    {reason:26} {seconds:8.3f} s")
    for name, seconds in result["writing_thread_s"].items():
        print(f"  beside it, {name:16} {seconds:8.3f} s")


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="What frames cost a simulation, and what the solver waits for.")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--n", type=int, default=1024)
    parser.add_argument("--dtype", default="float32", choices=("float32", "float64"))
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--frame-every", type=int, default=10)
    parser.add_argument("--field", action="append", help=f"repeatable; {', '.join(FIELDS)} unless given")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, help="the folder whose disk is written to; a temporary one unless given")
    parser.add_argument("--live", action="store_true", help="also with a live page that is asked all the time")
    parser.add_argument("--decode", action="store_true", help="decodes of z instead of frames of a flow")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args(words)
    with tempfile.TemporaryDirectory(dir=asked.out) as folder:
        result = measure_decodes(asked, Path(folder)) if asked.decode else measure(asked, Path(folder))
    print(json.dumps(result)) if asked.json else show(result)


if __name__ == "__main__":
    main()
