"""The metrics of a run, as they stand in `metrics.json`: one model, from which the published schema is made.

Where it ran is told by facts: `gpu_hotloop_active` is computed from the device's type and the number of dispatches
that were executed there. Nothing sets it, and a file in which it contradicts those facts is refused.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Final, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, computed_field, model_validator

from dashi.errors import FileError
from dashi.io._files import read_plain, write_text
from dashi.io._run_names import METRICS

VERSION: Final = 1
NOTHING: Final = "none"
"""The backend or device of a part that took no part."""

_LARGEST: Final = 1 << 28

Count = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Digest = Annotated[str, Field(pattern="^[0-9a-f]{32}$")]
Fingerprint = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class _Strict(BaseModel):
    """Frozen, and without fields that nobody declared."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class StageSeconds(_Strict):
    """Seconds of wall time by stage; 0 for a stage of the first row that did not run. Those of the parts of a decode
    are device time: of one decode, measured apart, times the number of decodes."""

    encode: Seconds = Field(default=0.0, description="Making the state: reading and encoding the inputs.")
    learn: Seconds = Field(default=0.0, description="Fitting the operator.")
    rollout: Seconds = Field(default=0.0, description="The hot loop: steps and their observers.")
    decode: Seconds = Field(default=0.0, description="Turning states back into fields.")
    plot: Seconds = Field(default=0.0, description="Drawing.")
    wall: Seconds = Field(default=0.0, description="Everything, from the first stage to the last.")
    sim: Seconds | None = Field(default=None, description="Simulating the flow.")
    scatter: Seconds | None = Field(default=None, description="Decode: modes into the spectrum.")
    ifft_lp: Seconds | None = Field(default=None, description="Decode: inverse transform of the low modes.")
    mask: Seconds | None = Field(default=None, description="Decode: the ternary mask.")
    synth: Seconds | None = Field(default=None, description="Decode: synthesis of the residual.")
    ifft_resid: Seconds | None = Field(default=None, description="Decode: inverse transform of the residual.")
    combine: Seconds | None = Field(default=None, description="Decode: the sum.")
    readback: Seconds | None = Field(default=None, description="Copies from the device to the host.")
    video: Seconds | None = Field(default=None, description="Encoding a video.")


class HashRecord(_Strict):
    """The state's hash after so many steps."""

    step: Count = Field(description="Steps done.")
    hash: Digest = Field(description="BLAKE3 of the bytes of all states, cut to 128 bits: 32 lower-case hex digits.")


class PerfFlag(_Strict):
    """Something ran elsewhere, or in another way, than was asked for. Each is listed once."""

    name: str = Field(description="What fell back: op_device, way, tagged_rerun, ...")
    requested: str = Field(description="What was asked for.")
    used: str = Field(description="What was used instead.")
    reason: str = Field(description="Why.")


class Scores(_Strict):
    """How good a prediction is, against the truth."""

    l2: float | None = Field(default=None, description="Relative L2 error.")
    corr: float | None = Field(default=None, description="Correlation.")
    energy: float | None = Field(default=None, description="Relative error of the energy.")
    enstrophy: float | None = Field(default=None, description="Relative error of the enstrophy.")
    quotient: float | None = Field(
        default=None, description="Relative L2 error modulo the symmetries of the flow, of the window that is shown."
    )
    over_persistence: float | None = Field(default=None, description="Relative L2 error over that of persistence.")


class VerdictRecord(_Strict):
    """What became of the state."""

    name: str = Field(description="collapsed, stable, oscillating, bifurcating or blown up.")
    sentence: str = Field(description="The verdict in words.")
    evidence: dict[str, JsonValue] = Field(default={}, description="The numbers that it rests on.")


DeviceType = Literal["discrete", "integrated", "virtual", "software", "other", "reference", "null", "none"]


class StageRecord(_Strict):
    """One stage of a chain over several devices."""

    id: str = Field(description="Its id.")
    backend_used: str = Field(description="The device that it ran on: cpu, null, vulkan:0, ...")
    device: str = Field(description="The name of that device.")
    device_type: DeviceType = Field(description="Its type, as the driver reports it; reference is NumPy.")
    dispatches: Count = Field(description="Compute dispatches of the stage that were executed there.")
    items_in: Count = Field(description="Items that it began; more than came out where it died and began some anew.")
    items_out: Count = Field(description="Items that it handed on.")
    compute_seconds: Seconds = Field(description="Seconds that it computed.")
    transfer_seconds: Seconds = Field(description="Seconds that its results were on their way to the next stage.")
    starved_seconds: Seconds = Field(description="Seconds that it waited for input.")
    blocked_seconds: Seconds = Field(description="Seconds that it waited for a free slot of the link behind it.")
    restarts: Count = Field(default=0, description="How often it died and began anew.")

    @property
    def on_gpu(self) -> bool:
        """Whether it executed dispatches on a Vulkan device that is not a CPU."""
        return ran_on_gpu(self.backend_used, self.device_type, self.dispatches)


def ran_on_gpu(backend: str, device_type: str, dispatches: int) -> bool:
    """Whether dispatches were executed on a Vulkan device that is not a CPU."""
    return backend.startswith("vulkan:") and device_type != "software" and dispatches > 0


class Metrics(_Strict):
    """The truth about one run. Fields without a default are always present."""

    schema_version: Literal[1] = Field(description="The version of this schema.")
    dashi_version: str = Field(description="The version of the program that ran.")
    command: str = Field(description="What ran, for instance rollout.")
    finished: str = Field(description="When it ended: UTC, ISO 8601.")

    op_backend_requested: str = Field(description="The device asked for: auto, cpu, null, vulkan:0, vulkan:NAME.")
    op_backend_used: str = Field(description="The device that advanced the state: cpu, null, vulkan:0, ...")
    op_device: str = Field(description="The name of that device.")
    op_device_type: DeviceType = Field(description="Its type, as the driver reports it; reference is NumPy.")
    decode_backend_requested: str = Field(default=NOTHING, description="The device asked for to decode, or none.")
    decode_backend_used: str = Field(default=NOTHING, description="The device that decoded, or none.")
    decode_device: str = Field(default=NOTHING, description="Its name, or none.")
    fft_backend_requested: str = Field(default=NOTHING, description="The device asked for to transform, or none.")
    fft_backend_used: str = Field(default=NOTHING, description="The device that transformed, or none.")
    hotloop_dispatches: Count = Field(description="Compute dispatches of the hot loop that were executed on op_device.")

    device_name: str = Field(description="The name of the main device (op_device).")
    driver_name: str = Field(description="Its driver.")
    driver_version: str = Field(description="The driver's version.")
    kernel_fingerprints: dict[str, Fingerprint] = Field(
        description='SHA-256 of the SPIR-V of each kernel used, by "kernel/shader.dtype".'
    )
    dtype: Literal["float32", "float64"] = Field(description="The element type of the state.")
    steps: Count = Field(description="Steps done.")
    steps_per_s: Seconds = Field(description="Steps per second, frames and looks included; 0 if none was done.")
    ns_per_step: Seconds = Field(description="Nanoseconds per step of the rollout stage; 0 if none was done.")
    stage_seconds: StageSeconds = Field(description="Wall time by stage, in seconds.")
    hashes: list[HashRecord] = Field(description="The state's hashes, by step.")
    nonfinite_count: Count = Field(description="Components that were not finite when last observed.")
    peak_host_memory_bytes: Count = Field(description="The largest resident set of the process.")
    peak_device_memory_bytes: Count = Field(description="The most that was reserved on the device; 0 for cpu and null.")
    perf_flags: list[PerfFlag] = Field(description="Every fallback, once. Empty: all ran as asked.")

    stopped: bool = Field(default=False, description="Ended early: by Ctrl-C, or by a value that is not finite.")
    portable: bool | None = Field(default=None, description="Whether the hashes hold on every device.")
    way: str | None = Field(default=None, description="How steps ran: stepwise, workgroup, tagged or fast.")
    way_reason: str | None = Field(default=None, description="Why that way.")
    reruns: Count | None = Field(default=None, description="Chunks that were repeated step by step.")
    states: Count | None = Field(default=None, description="States of the ensemble.")
    state_shape: list[Count] | None = Field(default=None, description="The shape of one state.")
    operator: str | None = Field(default=None, description="The kind of the operator.")
    final_norm: float | None = Field(default=None, description="The L2 norm of all states at the end.")
    verdict: VerdictRecord | None = Field(default=None, description="What became of the state.")
    certificate_digest: Digest | None = Field(default=None, description="The digest of the run's certificate.")

    float_rules: str | None = Field(
        default=None,
        description="How portable modules held a Vulkan device to rounding and NaN: declared for which widths of "
        "floats, or by custom.",
    )
    fft_device: str | None = Field(default=None, description="The name of the device that transformed.")
    decode_observer: str | None = Field(
        default=None, description="What came back of decoded fields: none, metrics, snapshots or visualize."
    )
    decode_dtype: Literal["float32", "float64"] | None = Field(
        default=None, description="The element type of decoded fields."
    )
    decode_residual: str | None = Field(default=None, description="The residual: none, seeded or statistics.")
    decode_gate: str | None = Field(default=None, description="Its gate: open, support or signed.")
    decode_residual_error: float | None = Field(
        default=None, description="Relative L2 error of the first field with the residual, where the truth is known."
    )
    decode_lowpass_error: float | None = Field(
        default=None, description="The same without the residual: what the residual costs is the difference."
    )
    decode_snapshots: Count | None = Field(default=None, description="Fields that were decoded.")
    decode_dispatches: Count | None = Field(
        default=None, description="Compute dispatches of one decode on decode_device."
    )
    decode_beside: str | None = Field(
        default=None,
        description="Of a decode beside the steps, what it ran on: another queue, or another device; absent where it "
        "was recorded behind the steps.",
    )
    decode_wait_seconds: Seconds | None = Field(
        default=None, description="Seconds that the steps waited, since too many states waited to be decoded."
    )
    decode_bytes_read: Count | None = Field(
        default=None, description="Bytes of decoded fields and their measures that came back from the device."
    )
    decode_stage_ns: dict[str, Seconds] | None = Field(
        default=None,
        description="Nanoseconds of one decode by stage, on the device's clock where it has one, measured apart.",
    )
    decode_levels: list[Count] | None = Field(default=None, description="Levels that were decoded.")
    annihilation_level: Count | None = Field(default=None, description="The level of annihilation.")
    active_cells_by_level: list[Count] | None = Field(default=None, description="Active cells, by level.")
    entropy_plateau: float | None = Field(default=None, description="The entropy at which the field stays.")
    train: Scores | None = Field(default=None, description="Scores on what was fitted.")
    eval: Scores | None = Field(default=None, description="Scores on what was held out.")

    stages: list[StageRecord] | None = Field(default=None, description="Stages of a chain over devices, in order.")

    @computed_field(
        description="True only if a compute dispatch of the hot loop was executed on a Vulkan device that is not a "
        "CPU. Derived from op_backend_used, op_device_type and hotloop_dispatches, and from those of stages."
    )
    @property
    def gpu_hotloop_active(self) -> bool:
        """Derived, never set."""
        whole = ran_on_gpu(self.op_backend_used, self.op_device_type, self.hotloop_dispatches)
        return whole or any(stage.on_gpu for stage in self.stages or ())

    @model_validator(mode="wrap")
    @classmethod
    def _derive(cls, data: Any, build: Any) -> Metrics:
        """A document may repeat the derived field, but not contradict the facts."""
        claimed = None
        if isinstance(data, dict):
            data = dict(cast("dict[str, Any]", data))
            claimed = data.pop("gpu_hotloop_active", None)
        metrics = cast("Metrics", build(data))
        if claimed is not None and claimed is not metrics.gpu_hotloop_active:
            raise ValueError("gpu_hotloop_active contradicts the device's type and the number of dispatches")
        return metrics

    @model_validator(mode="after")
    def _once(self) -> Metrics:
        names = [(flag.name, flag.requested) for flag in self.perf_flags]
        if len(set(names)) < len(names):
            raise ValueError("perf_flags lists a fallback twice")
        return self


def to_json(metrics: Metrics) -> str:
    """The document, without the fields that do not apply."""
    return metrics.model_dump_json(indent=2, exclude_none=True) + "\n"


def write_metrics(path: Path, metrics: Metrics) -> None:
    """Writes the document, all or nothing."""
    write_text(path, to_json(metrics))


def read_metrics(path: Path) -> Metrics:
    """Reads a document and holds it against the schema."""
    data = read_plain(path, _LARGEST)
    try:
        document: Any = json.loads(data)
        version = cast("dict[str, Any]", document).get("schema_version") if isinstance(document, dict) else None
        if version != VERSION:
            raise FileError(f"{path} has schema version {version!r}; this is version {VERSION}.", "use another dashi.")
        return Metrics.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the document"
        raise FileError(f"{path} is not a metrics document: {where}: {first['msg']}.", "write it anew.") from error
    except (ValueError, RecursionError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{path} is not JSON.", "write it anew.") from error


def schema() -> str:
    """The published JSON schema (docs/metrics-schema.json)."""
    document: dict[str, Any] = Metrics.model_json_schema(mode="serialization")
    for part in (document, *document["$defs"].values()):
        # Only fields without a value are left away, and only those can be without one.
        fields = part.get("properties", {}).items()
        part["required"] = [name for name, field in fields if "default" not in field or field["default"] is not None]
    return json.dumps(document, indent=2) + "\n"


def markdown() -> str:
    """The fields as tables for people (docs/metrics.md)."""
    document: Any = json.loads(schema())
    parts = {METRICS: document, **document["$defs"]}
    tables: list[str] = []
    for title, part in parts.items():
        if "properties" not in part:
            continue
        rows = [
            f"| `{name}` | {'always' if name in part['required'] else 'where it applies'} | {field['description']} |"
            for name, field in part["properties"].items()
        ]
        tables.append("\n".join([f"### {title}", "", "| field | present | meaning |", "|---|---|---|", *rows, ""]))
    return "\n".join(tables)
