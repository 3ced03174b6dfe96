"""The metrics document: its schema is published and current, and it cannot say what the facts do not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from dashi.errors import FileError
from dashi.io.metrics import Metrics, PerfFlag, StageSeconds, markdown, read_metrics, schema, to_json, write_metrics

DOCS = Path(__file__).parents[2] / "docs"
FACTS: dict[str, Any] = {
    "schema_version": 1,
    "dashi_version": "0",
    "command": "rollout",
    "finished": "2026-01-01T00:00:00Z",
    "op_backend_requested": "auto",
    "op_backend_used": "vulkan:0",
    "op_device": "a GPU",
    "op_device_type": "discrete",
    "hotloop_dispatches": 12,
    "device_name": "a GPU",
    "driver_name": "a driver",
    "driver_version": "1",
    "kernel_fingerprints": {"gemv/main.f32": "0" * 64},
    "dtype": "float32",
    "steps": 1000,
    "steps_per_s": 1e6,
    "ns_per_step": 1e3,
    "stage_seconds": StageSeconds(rollout=0.001, wall=0.1),
    "hashes": [],
    "nonfinite_count": 0,
    "peak_host_memory_bytes": 1,
    "peak_device_memory_bytes": 1,
    "perf_flags": [],
}
ALWAYS = """
    op_backend_requested op_backend_used op_device decode_backend_requested decode_backend_used decode_device
    fft_backend_requested fft_backend_used gpu_hotloop_active device_name driver_name kernel_fingerprints dtype steps
    steps_per_s ns_per_step stage_seconds hashes nonfinite_count peak_host_memory_bytes peak_device_memory_bytes
    perf_flags schema_version
""".split()


def test_every_field_that_is_promised_is_always_there() -> None:
    document = json.loads(to_json(Metrics(**FACTS)))
    assert not set(ALWAYS) - set(document)
    assert {"encode", "learn", "rollout", "decode", "plot", "wall"} == set(document["stage_seconds"])
    published = json.loads((DOCS / "metrics-schema.json").read_text())
    assert set(ALWAYS) <= set(published["required"])


def test_published_schema_is_current() -> None:
    assert (DOCS / "metrics-schema.json").read_text() == schema()


def test_page_has_the_table_of_the_schema() -> None:
    page = (DOCS / "metrics.md").read_text()
    assert page.split("<!-- fields -->\n")[1].split("<!-- end -->")[0] == markdown()


def test_a_document_has_exactly_the_required_fields_where_nothing_more_applies() -> None:
    assert set(json.loads(to_json(Metrics(**FACTS)))) == set(json.loads(schema())["required"])


def test_every_field_is_explained() -> None:
    published = json.loads(schema())
    models = [published, *published["$defs"].values()]
    assert not [name for m in models for name, field in m.get("properties", {}).items() if not field.get("description")]


@pytest.mark.parametrize(
    ("used", "kind", "dispatches", "active"),
    [
        ("vulkan:0", "discrete", 1, True),
        ("vulkan:0", "integrated", 5, True),
        ("vulkan:1", "other", 5, True),
        ("vulkan:0", "discrete", 0, False),
        ("vulkan:0", "software", 5, False),
        ("cpu", "reference", 5, False),
        ("null", "null", 5, False),
    ],
)
def test_gpu_hotloop_is_derived_from_what_was_executed(used: str, kind: Any, dispatches: int, active: bool) -> None:
    made = Metrics(**{**FACTS, "op_backend_used": used, "op_device_type": kind, "hotloop_dispatches": dispatches})
    assert made.gpu_hotloop_active is active
    assert json.loads(to_json(made))["gpu_hotloop_active"] is active


def test_gpu_hotloop_cannot_be_set(tmp_path: Path) -> None:
    software = {**FACTS, "op_device_type": "software"}
    with pytest.raises(ValidationError, match="contradicts"):
        Metrics(**{**software, "gpu_hotloop_active": True})
    metrics = Metrics(**software)
    with pytest.raises((ValidationError, AttributeError)):
        metrics.gpu_hotloop_active = True  # pyright: ignore[reportAttributeAccessIssue]
    document = json.loads(to_json(metrics)) | {"gpu_hotloop_active": True}
    (tmp_path / "metrics.json").write_text(json.dumps(document))
    with pytest.raises(FileError, match=r"contradicts the device's type.* Fix: "):
        read_metrics(tmp_path / "metrics.json")


def test_a_document_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    flag = PerfFlag(name="op_device", requested="vulkan:7", used="cpu", reason="there is no vulkan:7")
    made = Metrics(**{**FACTS, "perf_flags": [flag], "entropy_plateau": 0.5, "train": {"l2": 0.1}})
    write_metrics(tmp_path / "metrics.json", made)
    assert read_metrics(tmp_path / "metrics.json") == made


def test_a_fallback_is_listed_once() -> None:
    flag = PerfFlag(name="op_device", requested="vulkan:7", used="cpu", reason="")
    with pytest.raises(ValidationError, match="lists a fallback twice"):
        Metrics(**{**FACTS, "perf_flags": [flag, flag]})


@pytest.mark.parametrize(
    "change", [{"speed": 1}, {"steps": -1}, {"steps": "many"}, {"dtype": "float16"}, {"ns_per_step": float("nan")}]
)
def test_documents_that_do_not_fit_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Metrics(**{**FACTS, **change})


@pytest.mark.parametrize(
    "text", ["", "[]", "{", "[" * 100_000, '{"schema_version": 2}', '{"schema_version": 1}', "\xff"]
)
def test_files_that_are_none_are_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "metrics.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(FileError, match=" Fix: "):
        read_metrics(tmp_path / "metrics.json")
