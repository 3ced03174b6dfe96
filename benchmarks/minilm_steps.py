"""MiniLM step by step on a device: python benchmarks/minilm_steps.py [--device vulkan:0] [--seconds 80] [--json FILE].

Prints the device time of a whole run, that of each step (from timestamps between the steps), what a step costs that
does nothing, and, for each kind of product and of attention, the time of one level of steps under many tunings, the
fastest first. At the end the whole run again with the fastest tuning of each. The weights are random, which changes no
time; the bits of every candidate are compared with those of the run before.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import dashi
from dashi.bench.minilm.model import LAYERS, POSITIONS, WIDTH, build_minilm
from dashi.errors import DashiError
from dashi.graph import run_passes
from dashi.graph._assembly import Assembly
from dashi.graph.debug import Debug
from dashi.graph.ir import Node
from dashi.graph.pass_order import PASSES
from dashi.graph.passes.choose_products import product_passes
from dashi.graph.passes.plan_memory import PlanMemory
from dashi.graph.passes.record import PipelineMemory, Record
from dashi.graph.passes.schedule import PlannedStep, Schedule
from dashi.kernels.linear import _products as products
from dashi.runtime.array import Array
from dashi.runtime.device import Device, Program, ScratchPool, Step
from dashi.types import Shape

INNER = 4 * WIDTH
TILES = (
    (32, 24), (16, 16), (16, 32), (32, 16), (32, 48), (64, 24), (32, 32), (16, 48), (16, 24), (64, 32), (64, 16),
    (32, 64), (16, 64), (64, 48), (64, 64),
)  # fmt: skip
TUNED = ("product", "attention", "layer_norm")
"""Kinds of steps whose tunings are tried: those of the layers."""
Tuning = dict[str, int]


def random_weights(layers: int) -> dict[str, Any]:
    """Small random numbers of the model's shapes, with a short vocabulary."""
    rng = np.random.default_rng(7)
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (1000, WIDTH),
        "embeddings.token_type_embeddings.weight": (2, WIDTH),
        "embeddings.position_embeddings.weight": (POSITIONS, WIDTH),
    }
    norms = ["embeddings.LayerNorm"]
    for layer in range(layers):
        name = f"encoder.layer.{layer}"
        linear = {f"attention.self.{part}": (WIDTH, WIDTH) for part in ("query", "key", "value")}
        linear |= {"attention.output.dense": (WIDTH, WIDTH), "intermediate.dense": (INNER, WIDTH)}
        for part, shape in (linear | {"output.dense": (WIDTH, INNER)}).items():
            shapes |= {f"{name}.{part}.weight": shape, f"{name}.{part}.bias": shape[:1]}
        norms += [f"{name}.attention.output.LayerNorm", f"{name}.output.LayerNorm"]
    shapes |= {f"{name}.{part}": (WIDTH,) for name in norms for part in ("weight", "bias")}
    return {name: (rng.standard_normal(shape) / 20).astype(np.float32) for name, shape in shapes.items()}


@dataclass
class Model:
    """The compiled parts of the model, to be recorded with other tunings."""

    device: Device
    assembly: Assembly
    memory: PipelineMemory
    inputs: dict[str, Any]
    tunings: dict[str, Tuning] = field(default_factory=dict)
    """Numbers by kind of step."""

    arrays: dict[Any, Array] = field(default_factory=dict)
    """Operands of steps that are timed alone."""

    def normal(self, node: Node, shape: Shape) -> Array:
        """Numbers as the model has them, neither tiny nor special, in the place of a value: they decide how products
        are computed. Masks count every key."""
        key = (node.name, shape)
        if key not in self.arrays:
            values = np.random.default_rng(len(self.arrays)).standard_normal(shape)
            values = np.ones(shape) if "cast" in node.name else values
            self.arrays[key] = self.device.array(values.astype(node.dtype.numpy))
        return self.arrays[key]

    @property
    def steps(self) -> tuple[PlannedStep, ...]:
        """The steps, with the tunings that are set."""
        return tuple(tuned(step, self.tunings.get(kind(step))) for step in self.assembly.steps)

    def record(self, timed: Any) -> Any:
        """The recording of the whole model."""
        graph, steps = self.assembly.graph, self.steps
        return replace(Record(slots=1), timed=timed).run(self.device, graph, steps, self.memory)

    def run(self, recorded: Any) -> Any:
        """The ticket of a run that ended."""
        feed = {array: self.inputs[name] for name, array in recorded.inputs.items()}
        ticket = recorded.program.submit(feed=feed)
        ticket.wait()
        return ticket


def tuned(step: PlannedStep, numbers: Tuning | None) -> PlannedStep:
    """A step whose kernel has no tuning but this one."""
    if numbers is None or step.launch is None:
        return step
    kernel = replace(step.launch.kernel, tunings={"tried": numbers}, prefer=None)
    return replace(step, launch=replace(step.launch, kernel=kernel))


def kind(step: PlannedStep) -> str:
    """What steps are alike: kernel without its digest, and shapes."""
    if step.launch is None:
        return step.place
    family = "product" if "tile" in "".join(step.launch.kernel.shaders) else step.launch.kernel.name
    shapes = " ".join("x".join(map(str, shape)) for shape in (*step.launch.shapes[:2], step.launch.result))
    return f"{family} {shapes}"


def prepare(device: Device, tokens: int, layers: int, class_: str) -> Model:
    """The model, lowered, in memory of the device."""
    graph = build_minilm(random_weights(layers), 1, tokens, layers=layers)
    lowered = run_passes(graph, (*PASSES, *product_passes(device, class_, None)))
    steps = Schedule(portable=class_ == "portable").run(lowered, device.features)
    plan = PlanMemory(alignment=max(256, device.part_alignment)).run(lowered, steps)
    assembly = Assembly(device, lowered, steps, plan, 1, Debug())
    memory, recorded = assembly.build(dict(graph.params))
    recorded.program.close()
    ids = np.random.default_rng(1).integers(0, 1000, (1, tokens)).astype(np.uint32)
    return Model(device, assembly, memory, {"ids": ids, "counts": np.ones((1, tokens), np.bool_)})


def whole_run(model: Model, seconds: float) -> tuple[float, float, bytes]:
    """Median microseconds of a run on the device and on the host's clock, and its result."""
    recorded, result = model.record(True), b""
    try:
        device_us: list[float] = []
        wall_us: list[float] = []
        warm = time.perf_counter() + seconds / 2
        end = warm + seconds / 2
        while not device_us or time.perf_counter() < end:
            start = time.perf_counter_ns()
            ticket = model.run(recorded)
            took = time.perf_counter_ns() - start
            if time.perf_counter() >= warm or not device_us:
                device_us.append((ticket.device_ns() or took) / 1e3)
                wall_us.append(took / 1e3)
            result = ticket.fetched(recorded.results["embedding"]).tobytes()
        return statistics.median(device_us), statistics.median(wall_us), result
    finally:
        recorded.program.close()


def step_table(model: Model, runs: int) -> list[dict[str, Any]]:
    """Median microseconds of every step of a run, and how it is launched."""
    recorded = model.record("steps")
    try:
        spans = [model.run(recorded).step_times() for _ in range(runs)]
        us = [statistics.median((run[i].end_ns - run[i].start_ns) / 1e3 for run in spans) for i in range(len(spans[0]))]
        labels = [span.label for span in spans[0]]
        listed = [step for step in model.steps if step.launch is not None or step.place == "copies"]
        bound = [step for step in recorded.program.steps if isinstance(step, Step)]
        rows: list[dict[str, Any]] = []
        launched = iter(zip([s for s in listed if s.launch], bound, strict=False))
        for label, took in zip(labels, us, strict=True):
            row: dict[str, Any] = {"label": label, "us": took}
            if label not in ("feed", "fetch"):
                step, made = next(launched)
                plan = made.call and step.launch and step.launch.kernel.plan(made.call)
                row |= {"node": step.node.name, "kind": kind(step), "level": step.level}
                row["dispatches"] = [
                    f"{d.shader} {d.groups[0]} groups {small(d.spec)}" for d in (plan.dispatches if plan else ())
                ]
            rows.append(row)
        return rows
    finally:
        recorded.program.close()


def lines_of(table: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A line for each kind of step: how many, microseconds of one and of all, and how they are launched."""
    named: dict[str, list[Mapping[str, Any]]] = {}
    for row in table:
        named.setdefault(row.get("kind", row["label"]), []).append(row)
    for name, rows in named.items():
        us = [row["us"] for row in rows]
        how = "; ".join(rows[0].get("dispatches", ()))
        yield f"{len(rows):3} x {statistics.median(us):8.2f} = {sum(us):8.2f} us  {name}; {how}"


def small(spec: Mapping[str, int]) -> str:
    """The constants that say how a workgroup works."""
    names = ("ACROSS", "DOWN", "GROUPS", "SLAB", "LANES", "DEPTH", "LOCAL", "TEAM", "SPAN", "EACH", "HELD")
    return " ".join(f"{name}={spec[name]}" for name in names if name in spec)


def levels(model: Model) -> dict[str, list[PlannedStep]]:
    """The steps of one level of each kind."""
    named: dict[str, list[PlannedStep]] = {}
    for step in model.assembly.steps:
        if step.launch is None:
            continue
        if (known := named.get(kind(step))) and known[0].level != step.level:
            continue
        named.setdefault(kind(step), []).append(step)
    return named


@dataclass
class Level:
    """The steps of one level as a program, recorded many times over, and what it took."""

    program: Program
    steps: list[Step]
    repeats: int
    tuning: Tuning | None
    launch: str = "usual"
    us: list[float] = field(default_factory=list)

    def run(self, times: int) -> None:
        """Runs it so many times, and keeps the median."""
        taken = [self.program.run_timed() for _ in range(times)]
        self.us.append(statistics.median(t.wall if t.device is None else t.device for t in taken) / 1e3 / self.repeats)

    def result(self) -> bytes:
        """What its steps give."""
        return b"".join(step.outputs[0].numpy().tobytes() for step in self.steps)


def prepare_level(model: Model, steps: Sequence[PlannedStep], numbers: Tuning | None) -> Level:
    """One level of steps with the barrier behind it, under a tuning."""
    device, graph = model.device, model.assembly.graph
    scratch: ScratchPool = {}
    bound: list[Step] = []
    for step in (tuned(step, numbers) for step in steps):
        assert step.launch is not None
        read = [model.normal(graph[n], shape) for n, shape in zip(step.reads, step.launch.shapes, strict=True)]
        out = device.empty(step.launch.result, graph[step.node.name].dtype.numpy)
        bound.append(
            device.bind(step.launch.kernel, *read, out=out, tuning=None, scratch=scratch, **step.launch.scalars)
        )
    repeats = 32 if device.info.is_hardware else 1
    program = device.program(bound * repeats, timed=True)
    program.run()
    return Level(program, bound, repeats, numbers)


def product_tunings(quick: bool) -> Iterator[Tuning]:
    """Numbers to try for products, in the order in which they are worth it."""
    for name, numbers in products.TUNINGS.items():
        if name not in ("few_rows", "small_tiles_few"):
            yield dict(numbers)
    base: Tuning = {**products.FITTED, "fill": products.tiles.ALWAYS, "few": 0}
    for slab, block, invocations, teams in ((16, 8, 512, 64), (16, 8, 256, 64), (16, 4, 512, 64), (16, 8, 1024, 64)):
        for rows, columns in TILES[: 4 if quick else None]:
            numbers = {"slab": slab, "block": block, "invocations": invocations, "teams": teams}
            yield {**base, **numbers, "tile_rows": rows, "tile_columns": columns}
    for rows, columns in TILES[: 0 if quick else 6]:
        for slab, teams in ((32, 64), (16, 3), (16, 2)):
            sizes = {"slab": slab, "invocations": 512, "teams": teams, "tile_rows": rows, "tile_columns": columns}
            yield {**base, **sizes}


def candidates(name: str, steps: Sequence[PlannedStep], quick: bool) -> Iterator[Tuning]:
    """Numbers to try for a kind of step."""
    assert steps[0].launch is not None
    if name.startswith("product"):
        yield from product_tunings(quick)
    elif name.startswith("attention"):
        yield from ({"groups": groups} for groups in (16, 8, 4, 2, 1))
    else:
        yield from (dict(numbers) for numbers in steps[0].launch.kernel.tunings.values())
        first = dict(next(iter(steps[0].launch.kernel.tunings.values()), {}))
        if "lanes" in first and "teams" in first:
            yield from ({**first, "lanes": lanes, "teams": 1} for lanes in (32, 64, 128, 256))


def tune(model: Model, name: str, steps: Sequence[PlannedStep], seconds: float, quick: bool) -> list[dict[str, Any]]:
    """Candidates of a kind of step by their time, the fastest first; those with other bits are named. All are made
    before any is timed: a device that waits for a compiler has a slow clock."""
    hardware = model.device.info.is_hardware
    prepared = [prepare_level(model, steps, None)]
    rows: list[dict[str, Any]] = []
    launches: set[tuple[Any, ...]] = set()
    end = time.perf_counter() + seconds
    for numbers in candidates(name, steps, quick):
        if time.perf_counter() > end:
            rows.append({"us": float("inf"), "tuning": None, "stopped": "no time for more"})
            break
        try:
            launched = dispatches(model, steps[0], numbers)
            if launched not in launches:
                launches.add(launched)
                prepared.append(prepare_level(model, steps, numbers))
                prepared[-1].launch = str(launched)
        except DashiError as error:
            rows.append({"us": float("inf"), "tuning": numbers, "failed": str(error)[:80]})
    warm = time.perf_counter() + (0.4 if hardware else 0.0)
    while time.perf_counter() < warm:
        prepared[0].program.run()
    for _ in range(4 if hardware else 1):
        for level in prepared:
            level.run(5 if hardware else 1)
    expected = prepared[0].result()
    for level in prepared:
        row = {"us": min(level.us), "tuning": level.tuning, "launch": level.launch, "same": level.result() == expected}
        rows.append(row)
        level.program.close()
    return sorted(rows, key=lambda row: row["us"])


def dispatches(model: Model, step: PlannedStep, numbers: Tuning) -> tuple[Any, ...]:
    """How a step is launched with these numbers: two tunings of one launch need not both be tried."""
    step = tuned(step, numbers)
    assert step.launch is not None
    graph, memory, scratch = model.assembly.graph, model.memory, dict[Any, Any]()
    read = [memory.array(graph[n], shape) for n, shape in zip(step.reads, step.launch.shapes, strict=True)]
    out = memory.array(step.node, step.launch.result)
    launch = step.launch
    bound = model.device.bind(launch.kernel, *read, out=out, tuning=None, scratch=scratch, **launch.scalars)
    plan = launch.kernel.plan(bound.call)
    return tuple((d.shader, d.groups, small(d.spec)) for d in plan.dispatches)


def empty_us(device: Device) -> tuple[float, float]:
    """Microseconds of a dispatch of one element with a barrier behind it, and without."""
    x, outs = device.array(np.ones(1, np.float32)), [device.empty(1) for _ in range(64)]
    chain = [device.bind("scale", x, out=outs[0], a=2.0)] * 64
    apart = [device.bind("scale", x, out=out, a=2.0) for out in outs]
    return tuple(_program_us(device.program(steps, timed=True)) / 64 for steps in (chain, apart))  # type: ignore[return-value]


def _program_us(program: Program) -> float:
    taken = [program.run_timed() for _ in range(20 if program.device.info.is_hardware else 2)]
    program.close()
    return statistics.median((t.wall if t.device is None else t.device) / 1e3 for t in taken)


def say(*words: object) -> None:
    """Prints at once: whoever waits sees how far it is."""
    print(*words, flush=True)


def main() -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--class", dest="class_", default="portable", choices=("portable", "device"))
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--layers", type=int, default=LAYERS)
    parser.add_argument("--seconds", type=float, default=70, help="for all tunings together")
    parser.add_argument("--no-tunings", action="store_true")
    parser.add_argument("--quick", action="store_true", help="few tiles")
    parser.add_argument("--best", type=int, default=7, help="lines for each kind of step")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    with dashi.open(options.device) as device:
        model = prepare(device, options.tokens, options.layers, options.class_)
        effort = 1.0 if device.info.is_hardware else 0.0
        device_us, wall_us, result = whole_run(model, effort)
        chained, apart = empty_us(device)
        say(f"{device.info.name}: whole run {device_us:.1f} us on the device, {wall_us:.1f} us until read")
        say(f"one element: {chained:.2f} us with a barrier, {apart:.2f} us without")
        table = step_table(model, 30 if device.info.is_hardware else 1)
        for line in lines_of(table):
            say(line)
        say(f"{sum(row['us'] for row in table):8.2f} us all steps")
        tried: dict[str, Any] = {}
        if not options.no_tunings:
            for what, us in fast_us(model):
                say(f"{us:8.2f} us  {what}")
            tried = tune_all(model, options)
            tuned_us, tuned_wall, other = whole_run(model, effort)
            say(f"with the fastest of each: {tuned_us:.1f} us on the device, {tuned_wall:.1f} us until read, "
                f"{'the same' if other == result else 'OTHER'} bits")  # fmt: skip
        if options.json:
            document = {"device": device.info.name, "us": device_us, "wall_us": wall_us, "steps": table, "tried": tried}
            with open(options.json, "w") as file:
                json.dump(document, file, indent=1)
    return 0


def fast_us(model: Model) -> Iterator[tuple[str, float]]:
    """Microseconds of plain products of the model's shapes, by kernels that are not portable and that are, under their
    tunings."""
    device, tokens = model.device, model.inputs["ids"].shape[1]
    hardware = device.info.is_hardware
    rng = np.random.default_rng(3)
    listed: list[tuple[str, Level]] = []
    for k, n in ((WIDTH, WIDTH), (WIDTH, INNER), (INNER, WIDTH)):
        a, b = (device.array(rng.standard_normal(shape).astype(np.float32)) for shape in ((tokens, k), (k, n)))
        for name, tunings in (("gemm_fast", ("small",)), ("gemm_tiled", ("small", "few_rows", "few_rows_deep"))):
            for tuning in tunings if hardware else ("fitted" if name == "gemm_tiled" else "guarded",):
                step = device.bind(dashi.kernel(name), a, b, tuning=tuning)
                repeats = 32 if hardware else 1
                program = device.program([step] * repeats, timed=True)
                listed.append((f"{name} {tokens} x {k} x {n} {tuning}", Level(program, [step], repeats, None)))
    for _ in range(60 if hardware else 1):
        for _, level in listed:
            level.run(5 if hardware else 1)
    for name, level in listed:
        yield name, min(level.us)
        level.program.close()


def tune_all(model: Model, options: argparse.Namespace) -> dict[str, Any]:
    """Tries the tunings of every kind of step, those that take most of a run with most of the time, and sets the
    fastest."""
    named = {name: steps for name, steps in levels(model).items() if name.startswith(TUNED)}
    weight = {name: 8.0 if name.startswith("product") else 1.0 for name in named}
    tried: dict[str, Any] = {}
    for name, steps in named.items():
        rows = tune(model, name, steps, options.seconds * weight[name] / sum(weight.values()), options.quick)
        say(f"{name}, {len(steps)} in a level, {len(rows)} tried:")
        for row in rows[: options.best]:
            what = row.get("failed") or row.get("stopped") or row.get("launch", "usual")
            numbers = {key: n for key, n in (row["tuning"] or {}).items() if products.FITTED.get(key) != n}
            say(f"{row['us']:8.2f} us  {what}  {numbers}{'' if row.get('same', True) else '  OTHER BITS'}")
        usual = next((row["us"] for row in rows if row["tuning"] is None and "stopped" not in row), None)
        say(f"{usual:8.2f} us  usual")
        best = next((row for row in rows if row["tuning"] is not None and row.get("same")), None)
        if best and usual and best["us"] < usual:
            model.tunings[name] = best["tuning"]
        tried[name] = rows
    return tried


if __name__ == "__main__":
    sys.exit(main())
