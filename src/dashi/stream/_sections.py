"""From the sections of a document to plain data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt

from dashi.errors import StreamConfigError, suggestion
from dashi.stream import _document as doc
from dashi.stream._draws import check_source
from dashi.stream._model import (
    BroadcastSpec,
    DeviceSpec,
    Feed,
    Field,
    FieldSource,
    LinkSpec,
    OpSettings,
    SourceSpec,
    StageSpec,
    StreamConfig,
    Value,
)
from dashi.stream._yaml import DocumentPath, YamlDocument
from dashi.types import DTYPES
from dashi.types import dtype as dtype_of

_NUMBERS: Final = ("mean", "scale", "low", "high", "support", "value", "start", "step")
_SPECS: Final = ("cpu", "null")
_MOST_LISTED: Final = 8192
"""Numbers of a constant that may stand in the file itself."""
_LARGEST_WHOLE: Final = 1 << 64
"""The largest magnitude of a whole number that is a parameter."""


def built(
    sections: doc.StreamDocument, bindings: Mapping[str, str], folder: Path, document: YamlDocument
) -> StreamConfig:
    """The configuration that the sections describe; files that it names lie in the folder."""
    broadcast = sections.broadcast if isinstance(sections.broadcast, tuple) else (sections.broadcast,)
    where = {
        (kind, index): document.place((kind, index))
        for kind, many in (("stages", sections.stages), ("links", sections.links))
        for index in range(len(many))
    }
    where |= {("ops", name): document.place(("ops", name)) for name in sections.ops}
    return StreamConfig(
        stages=tuple(StageSpec(s.id, s.device, s.node, s.max_semantic_depth, s.ops, s.offers) for s in sections.stages),
        links=tuple(_link(s) for s in sections.links),
        devices=_devices(sections, bindings, document),
        ops=_ops(sections, folder, document),
        chain=sections.chain,
        groups=sections.groups,
        source=SourceSpec(
            {
                name: _array(("source", "fields", name), name, section, folder, document)
                for name, section in sections.source.fields.items()
            },
            sections.source.items,
            sections.source.seed,
        ),
        result=sections.result,
        determinism_tier=sections.determinism_tier,
        window=sections.window,
        observe_every=sections.observe_every,
        broadcasts=tuple(BroadcastSpec(section.after, section.to) for section in broadcast),
        objective=sections.objective,
        latency_limit=sections.latency_limit,
        where=cast("Mapping[tuple[str | int, ...], str]", where),
    )


def _link(section: doc.LinkSection) -> LinkSpec:
    return LinkSpec(
        section.source,
        section.target,
        section.mode,
        section.codec,
        section.window,
        section.bandwidth or 0.0,
        section.latency or 0.0,
        section.max_inflight,
        section.seconds,
        section.fallback,
        {} if section.keep is None else {"keep": section.keep},
    )


def _devices(
    sections: doc.StreamDocument, bindings: Mapping[str, str], document: YamlDocument
) -> dict[str, DeviceSpec]:
    devices: dict[str, DeviceSpec] = {}
    for name, section in sections.devices.items():
        entry = doc.DeviceSection(spec=section) if isinstance(section, str) else section
        devices[name] = _device(name, entry)
    for name, spec in bindings.items():
        devices[name] = replace(devices.get(name, DeviceSpec(name, spec)), spec=spec)
        devices[name] = replace(devices[name], kind="CPU" if spec == "cpu" else devices[name].kind)
    for index, stage in enumerate(sections.stages):
        named = stage.device
        if named not in devices:
            if named not in _SPECS and not named.startswith("vulkan:"):
                raise StreamConfigError(
                    f"{document.place(('stages', index, 'device'))}: stage {stage.id!r} wants the device {named!r}, "
                    "which nothing binds.",
                    f"{suggestion(named, devices)}write `devices: {{{named}: vulkan:0}}`, or pass "
                    f"`devices={{'{named}': 'vulkan:0'}}`.",
                )
            devices[named] = DeviceSpec(named, named, "CPU" if named == "cpu" else "GPU")
    return devices


def _device(name: str, section: doc.DeviceSection) -> DeviceSpec:
    kind = section.type or ("CPU" if section.spec == "cpu" else "GPU")
    return DeviceSpec(
        name,
        section.spec,
        kind,
        section.max_semantic_depth,
        section.fp32_gflops or 0.0,
        section.mem_bw_gbs or 0.0,
        section.launch_s or 0.0,
        section.latency_class or "low",
        frozenset(section.features or ()),
    )


def _ops(sections: doc.StreamDocument, folder: Path, document: YamlDocument) -> dict[str, OpSettings]:
    observers = {name: section.every for name, section in sections.observers.items()}
    names = {*sections.ops, *observers}
    return {
        name: _op(name, sections.ops.get(name, doc.OpSection()), observers.get(name), folder, document)
        for name in sorted(names)
    }


def _op(name: str, section: doc.OpSection, every: int | None, folder: Path, document: YamlDocument) -> OpSettings:
    seconds = section.seconds
    return OpSettings(
        section.kernel,
        {k: Feed(v) if isinstance(v, str) else Feed(v.field, v.shape) for k, v in section.inputs.items()},
        {k: _parameter(("ops", name, "params", k), name, k, v, folder, document) for k, v in section.params.items()},
        section.outputs,
        section.depth_in,
        section.depth_out,
        section.latency_sensitive,
        section.migratable,
        section.io_class,
        {} if seconds is None else seconds if isinstance(seconds, dict) else {"*": seconds},
        section.stage,
        every,
    )


def _parameter(path: DocumentPath, op: str, name: str, value: Any, folder: Path, document: YamlDocument) -> Value:
    if isinstance(value, doc.ArraySection):
        return _array(path, f"{op}.{name}", value, folder, document)
    if isinstance(value, int) and abs(value) > _LARGEST_WHOLE:
        raise StreamConfigError(
            f"{document.place(path)}: {name} of op {op!r} is a whole number beyond 64 bits.",
            f"write one from -{_LARGEST_WHOLE} to {_LARGEST_WHOLE}, or a number with a point.",
        )
    if not isinstance(value, list):
        return cast("Value", value)
    try:
        values: npt.NDArray[Any] = np.asarray(cast("list[Any]", value))
    except (ValueError, OverflowError):
        values = np.array("ragged")
    if values.dtype.kind not in "biuf" or values.size > _MOST_LISTED:
        raise StreamConfigError(
            f"{document.place(path)}: {name} of op {op!r} is no array of up to {_MOST_LISTED} numbers.",
            "write rows of numbers, all as long, or keep them in an .npy file (`draw: file`).",
        )
    return np.ascontiguousarray(values, np.float64 if values.dtype.kind == "f" else None)


def _array(
    path: DocumentPath, name: str, section: doc.ArraySection, folder: Path, document: YamlDocument
) -> FieldSource:
    where = document.place(path)
    typed = section.dtype if path[0] == "ops" or section.dtype else "f32"
    if typed and typed not in DTYPES:
        raise StreamConfigError(
            f"{where}: {name} has the dtype {typed!r}.",
            f"{suggestion(typed, DTYPES)}use one of {', '.join(DTYPES)}.",
        )
    if math.prod(section.shape) > doc.MOST_ELEMENTS:
        raise StreamConfigError(
            f"{where}: {name} of shape {section.shape} has more than {doc.MOST_ELEMENTS} elements.", "make it smaller."
        )
    if Path(section.path).is_absolute() or ".." in Path(section.path).parts:
        raise StreamConfigError(
            f"{where}: {name} lies in {section.path!r}, outside the folder of the configuration.",
            "put the file beside the configuration.",
        )
    numbers = {key: value for key in _NUMBERS if (value := getattr(section, key)) is not None}
    source = FieldSource(
        Field(section.shape, dtype_of(typed).name if typed else ""),
        section.draw,
        numbers,
        str(folder / section.path) if section.path else "",
    )
    try:
        check_source(name, source)
    except StreamConfigError as error:
        raise StreamConfigError(f"{where}: {error.what}", error.fix) from None
    return source
