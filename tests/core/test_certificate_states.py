"""Certificates that name states: what they say, how a run falls into segments, and what a sample of them can miss."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dashi
from dashi.core import Linear, rollout
from dashi.core.certificates._certificate import (
    Certificate,
    Claim,
    StateRecord,
    StateRecords,
    document_digest,
    hashed_steps,
    read_certificate,
    write_certificate,
)
from dashi.core.certificates._certified_run import CertifiedRun, joined
from dashi.core.certificates._certify import certify
from dashi.core.certificates._segments import draw_segments, missed_with_probability, segments_of
from dashi.core.certificates._verify import Check, Difference, check_segment
from dashi.core.certificates.inputs import save_inputs
from dashi.core.rollouts._state_files import StateFiles, state_digest, state_name
from dashi.errors import CertificateError, FileError, InputError
from dashi.kernels.hash._blake3 import hexdigest128, hexdigest256

D, STEPS, EVERY, HASHED = 6, 23, 6, 3
TURN = Linear(np.kron(np.eye(D // 2), [[0.6, -0.8], [0.8, 0.6]]).astype(np.float32))
Z0 = np.arange(1, D + 1, dtype=np.float32)


def certified(folder: Path, bits: int = 128) -> Path:
    """The certificate of a run that kept states, beside them."""
    states = folder / "states"
    run = rollout(TURN, Z0, STEPS, device="cpu", hash_every=HASHED, observers=[StateFiles(EVERY, states, bits)])
    file = folder / "certificate.json"
    write_certificate(file, certify(run, file, save_inputs(folder / "inputs.npz", TURN, Z0), states))
    return file


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return certified(tmp_path)


def test_the_whole_digest_begins_with_the_one_that_is_cut() -> None:
    for size in (0, 1, 1024, 5000):
        data = bytes(range(256)) * 20
        assert hexdigest256(data[:size]).startswith(hexdigest128(data[:size]))
    # Of the paper's authors' test vectors: no bytes at all.
    assert hexdigest256(b"") == "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"


@pytest.mark.parametrize("bits", [128, 256])
def test_a_certificate_says_which_states_were_kept(tmp_path: Path, bits: int) -> None:
    document = json.loads(certified(tmp_path, bits).read_text())
    states = document["states"]
    assert (document["schema_version"], document["kind"], document["float_rules"]) == (2, "rollout", "")
    assert (states["every"], states["bits"]) == (EVERY, bits)
    assert [(one["step"], one["file"]) for one in states["files"]] == [
        (step, f"states/{step:012d}.npy") for step in (6, 12, 18)
    ]
    hashes = {claim["step"]: claim["hash"] for claim in document["hashes"]}
    state = Z0[None]
    for record in states["files"]:
        state = rollout(TURN, state, EVERY, device="cpu").state
        assert np.array_equal(np.load(tmp_path / record["file"]), state)
        assert record["digest"] == state_digest(state, bits)
        assert record["digest"][:32] == hashes[record["step"]]


def test_states_change_no_hash_and_no_kernel(file: Path) -> None:
    claimed, without = read_certificate(file), rollout(TURN, Z0, STEPS, device="cpu", hash_every=HASHED)
    assert [(one.step, one.hash) for one in claimed.hashes] == [(one.step, one.digest) for one in without.hashes]
    assert claimed.kernels == without.kernels


def test_a_run_that_kept_no_state_has_a_certificate_of_version_1(tmp_path: Path) -> None:
    run = rollout(TURN, Z0, 5, device="cpu", hash_every=1, observers=[StateFiles(6, tmp_path / "states")])
    made = certify(run, tmp_path / "c.json", save_inputs(tmp_path / "inputs.npz", TURN, Z0), tmp_path / "states")
    assert (made.schema_version, made.states, made.kind) == (1, None, None)
    write_certificate(tmp_path / "c.json", made)
    assert not {"states", "kind", "float_rules"} & set(json.loads((tmp_path / "c.json").read_text()))


CONTRADICTIONS: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "one state less": (lambda d: d["states"]["files"].pop(), "are not those of every 6 steps up to 23"),
    "one state too many": (
        lambda d: d["states"]["files"].append({"step": 24, "file": "states/x.npy", "digest": "0" * 32}),
        "are not those of every 6 steps up to 23",
    ),
    "states out of order": (lambda d: d["states"]["files"].reverse(), "are not those of every 6 steps up to 23"),
    "a stride without hashes": (lambda d: d["states"].update(every=4), "states of every 4 steps have no hashes"),
    "two states in one file": (
        lambda d: d["states"]["files"][1].update(file=d["states"]["files"][0]["file"]), "two states are in one file",
    ),
    "a digest that is not the hash": (
        lambda d: d["states"]["files"][1].update(digest="ab" * 16), "state after step 12 is not its hash",
    ),
    "swapped digests": (
        lambda d: _swap(d["states"]["files"], "digest"), "the digest of the state after step 6 is not its hash",
    ),
    "a digest of other length": (
        lambda d: d["states"]["files"][1].update(digest="ab" * 32), "state after step 12 does not have 128 bits",
    ),
    "other bits": (lambda d: d["states"].update(bits=256), "state after step 6 does not have 256 bits"),
    "bits that there are not": (lambda d: d["states"].update(bits=64), "states.bits"),
    "no states": (lambda d: d["states"].update(files=[]), "states.files"),
    "a path that is none": (lambda d: d["states"]["files"][0].update(file="a\x00b"), "file"),
    "states of version 1": (lambda d: d.update(schema_version=1), "version 1 has no field 'float_rules'"),
    "version 2 without states": (lambda d: d.pop("states"), "version 2 has the fields kind, float_rules, states"),
    "version 2 of no kind": (lambda d: d.update(kind=None), "version 2 has the fields kind, float_rules, states"),
}  # fmt: skip


def _swap(records: list[dict[str, Any]], name: str) -> None:
    records[0][name], records[1][name] = records[1][name], records[0][name]


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_a_certificate_that_contradicts_itself_is_refused_even_with_a_digest(name: str, file: Path) -> None:
    change, why = CONTRADICTIONS[name]
    document = json.loads(file.read_text())
    change(document)
    document["digest"] = document_digest(document)
    file.write_text(json.dumps(document))
    with pytest.raises(CertificateError, match=r"is not a certificate of dashi: .* Fix: ") as refused:
        read_certificate(file)
    assert why in str(refused.value)


def test_a_claim_of_a_thousand_million_states_is_refused_before_they_are_listed(file: Path) -> None:
    import tracemalloc

    document = json.loads(file.read_text())
    document["states"]["every"] = document["hash_every"] = 10**9
    document.update(steps=10**18, hashes=document["hashes"][:1])
    document["digest"] = document_digest(document)
    file.write_text(json.dumps(document))
    tracemalloc.start()
    with pytest.raises(CertificateError):
        read_certificate(file)
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()


# Segments


def sample_certificate(steps: int, hash_every: int, stride: int) -> Certificate:
    """A certificate of that many steps with states after every `stride` hashes; nobody has run it."""
    every = hash_every * stride
    claims = tuple(Claim(step=step, hash=f"{step:032x}") for step in hashed_steps(steps, hash_every))
    files = tuple(
        StateRecord(step=step, file=f"{step}.npy", digest=f"{step:032x}") for step in range(every, steps + 1, every)
    )
    states = StateRecords(every=every, bits=128, files=files)
    return Certificate.model_construct(steps=steps, hash_every=hash_every, hashes=claims, states=states)


@given(st.integers(1, 400), st.integers(1, 40), st.integers(1, 12))
def test_segments_are_the_whole_run_each_step_and_claim_once(steps: int, hash_every: int, stride: int) -> None:
    hash_every = min(hash_every, steps)
    if hash_every * stride > steps:
        stride = 1
    certificate = sample_certificate(steps, hash_every, stride)
    segments = segments_of(certificate)
    assert [segment.number for segment in segments] == [*range(len(segments))]
    assert segments[0].first == 0
    assert segments[0].start is None
    for before, after in itertools.pairwise(segments):
        assert after.start is not None
        assert before.end is after.start
        assert before.last == after.first == after.start.step
    assert segments[-1].last == steps
    assert sum(segment.steps for segment in segments) == steps
    assert sum((segment.claims for segment in segments), ()) == certificate.hashes
    assert (segments[-1].end is not None) == (steps % (hash_every * stride) == 0)
    for segment in segments:  # what a rollout of its own hashes, from its own start
        relative = [claim.step - segment.first for claim in segment.claims]
        assert relative == [*hashed_steps(segment.steps, hash_every)]


def test_without_states_there_is_one_segment(file: Path) -> None:
    certificate = read_certificate(file)
    plain = certificate.model_copy(update={"states": None})
    (segment,) = segments_of(plain)
    assert (segment.first, segment.last, segment.claims) == (0, STEPS, certificate.hashes)


@given(st.integers(1, 60), st.integers(0, 2**53), st.data())
def test_a_sample_has_as_many_segments_as_asked_for_in_order(segments: int, seed: int, data: st.DataObject) -> None:
    sample = data.draw(st.integers(1, segments))
    drawn = draw_segments(segments, sample, seed)
    assert len(set(drawn)) == len(drawn) == sample
    assert list(drawn) == sorted(drawn)
    assert set(drawn) <= set(range(segments))
    assert drawn == draw_segments(segments, sample, seed)
    assert set(drawn) <= set(draw_segments(segments, min(segments, sample + 1), seed))
    assert draw_segments(segments, None, seed) == tuple(range(segments))


@pytest.mark.parametrize(("segments", "sample"), [(16, 1), (16, 4), (30, 3), (30, 29), (5, 5)])
def test_a_fault_in_one_segment_is_found_at_the_rate_that_is_printed(segments: int, sample: int) -> None:
    """1,000 seeds; whichever segment is at fault. By chance it is five standard deviations off once in two million."""
    promised = 1 - missed_with_probability(segments, sample)
    allowed = 5 * math.sqrt(promised * (1 - promised) / 1000)
    for fault in range(segments):
        found = sum(fault in draw_segments(segments, sample, seed) for seed in range(1000)) / 1000
        assert abs(found - promised) <= allowed, (fault, found)


def test_pairs_of_segments_are_drawn_evenly() -> None:
    counts = dict.fromkeys([(a, b) for a in range(6) for b in range(a + 1, 6)], 0)
    for seed in range(3000):
        counts[draw_segments(6, 2, seed)] += 1  # pyright: ignore[reportArgumentType] - two of them
    expected = 3000 / len(counts)
    statistic = sum((count - expected) ** 2 / expected for count in counts.values())
    assert statistic < 42  # chi-square, 14 degrees of freedom: p = 1e-4


def test_the_sample_of_a_seed_is_the_same_for_ever() -> None:
    assert draw_segments(30, 5, 7) == (3, 13, 18, 27, 28)
    assert draw_segments(30, 5, 8) == (0, 7, 21, 27, 29)


@pytest.mark.parametrize(
    ("segments", "sample", "text"),
    [
        (
            30,
            31,
            r"`sample=` is 31, and the certificate has 30 segments. Fix: ask for 1 to 30, or leave `sample=` away",
        ),
        (30, 0, r"`sample=` is 0, and the certificate has 30 segments. Fix: ask for 1 to 30"),
        (1, 2, r"the certificate has 1 segment. Fix: leave `sample=` away; a run with `states_every=` keeps states"),
    ],
)
def test_samples_that_there_are_not_are_refused(segments: int, sample: int, text: str) -> None:
    with pytest.raises(InputError, match=text):
        draw_segments(segments, sample, 0)


# Repeating them


@pytest.mark.parametrize("bits", [128, 256])
def test_every_segment_is_repeated_from_the_state_before_it(tmp_path: Path, bits: int) -> None:
    certificate = read_certificate(certified(tmp_path, bits))
    run, segments = CertifiedRun.open(certificate, tmp_path, None), segments_of(certificate)
    done: list[int] = []
    with dashi.open("cpu") as device:
        checks = [run.check(segment, device, done.append) for segment in segments]
    assert [(one.hashes, one.steps, one.difference) for one in checks] == [
        (2, 6, None), (2, 12, None), (2, 18, None), (2, 23, None),
    ]  # fmt: skip
    assert sum(done) == STEPS
    whole = joined(checks)
    assert (whole.hashes, whole.steps, whole.difference, whole.finite) == (8, STEPS, None, True)


def test_the_last_states_must_be_those_kept_also_where_the_hash_is_shorter(tmp_path: Path) -> None:
    """As if somebody had found other states with the same 128 bits."""
    from dataclasses import replace

    certificate = read_certificate(certified(tmp_path, 256))
    first = segments_of(certificate)[0]
    assert first.end is not None
    other = first.end.digest[:32] + "0" * 32
    forged = replace(first, end=first.end.model_copy(update={"digest": other}))
    with dashi.open("cpu") as device:
        found = check_segment(forged, TURN, Z0, device)
    assert (found.hashes, found.steps) == (1, 3)
    assert found.difference == Difference(3, 6, other, first.end.digest)


def test_checks_come_to_all_that_agreed_before_the_first_difference() -> None:
    apart = Difference(6, 9, "a" * 32, "b" * 32)
    checks = [
        Check("cpu", "NumPy, here", 2, 6, None), Check("vulkan:0", "GPU, there", 0, 6, apart),
        Check("cpu", "NumPy, here", 2, 18, None, finite=False),
    ]  # fmt: skip
    assert joined(checks) == Check("cpu, vulkan:0", "NumPy, here, GPU, there", 2, 6, apart)
    assert joined(checks[:1]) == checks[0]
    assert not joined([checks[0], checks[2]]).finite


FAULTS: dict[str, tuple[Callable[[Path], Any], type[Exception], str]] = {
    "missing": (lambda p: p.unlink(), FileError, "the state after step 12 is not there"),
    "edited": (
        lambda p: np.save(p, np.load(p) + np.float32(1e-7)), CertificateError, "is not the state after step 12 of this",
    ),
    "of another type": (
        lambda p: np.save(p, np.load(p).astype(np.float64)), FileError, "float64 of shape (1, 6); float32",
    ),
    "of another shape": (
        lambda p: np.save(p, np.load(p)[0]), FileError, "float32 of shape (6,); float32 of shape (1, 6)",
    ),
    "cut short": (lambda p: p.write_bytes(p.read_bytes()[:-1]), FileError, "24 bytes, but holds 23"),
    "of more bytes": (lambda p: p.write_bytes(p.read_bytes() + b"x"), FileError, "24 bytes, but holds 25"),
    "much larger": (
        lambda p: p.write_bytes(p.read_bytes() + b"x" * 20_000), FileError, "bytes; at most 10036 are read",
    ),
    "no array": (lambda p: p.write_bytes(b"no array at all"), FileError, "is not a NumPy array"),
    "an archive": (lambda p: _archive(p, np.load(p)), FileError, "is not a NumPy array"),
    "a folder": (lambda p: (p.unlink(), p.mkdir()), FileError, "the state after step 12 is not there"),
    "empty": (lambda p: p.write_bytes(b""), FileError, "is not a NumPy array"),
    "another state of the run": (
        lambda p: p.write_bytes(p.with_name(state_name(18)).read_bytes()), CertificateError,
        "is not the state after step 12 of this certificate: its digest is other",
    ),
}  # fmt: skip


def _archive(path: Path, values: Any) -> None:
    with path.open("wb") as file:
        np.savez(file, values)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_state_that_is_not_the_one_kept_is_found_and_named(fault: str, file: Path) -> None:
    change, kind, text = FAULTS[fault]
    change(file.parent / "states" / state_name(12))
    certificate = read_certificate(file)
    states = CertifiedRun.open(certificate, file.parent, None).states
    assert states is not None
    with pytest.raises(kind, match="Fix: ") as refused:
        states.require(segments_of(certificate), lambda _: None)
    assert text in str(refused.value)
    assert "step 12" in str(refused.value)


def test_a_header_that_claims_a_huge_shape_takes_no_memory(file: Path) -> None:
    import tracemalloc

    path = file.parent / "states" / state_name(12)
    data = path.read_bytes()
    path.write_bytes(data.replace(b"(1, 6)}             ", b"(1, 99999999999)}   "))
    assert path.read_bytes() != data
    certificate = read_certificate(file)
    run = CertifiedRun.open(certificate, file.parent, None)
    assert run.states is not None
    tracemalloc.start()
    with pytest.raises(FileError, match="the state after step 12 cannot be used"):
        run.states.require(segments_of(certificate), lambda _: None)
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()


@pytest.mark.parametrize("named", ["/etc/passwd", "../states/000000000012.npy", "states/../../x.npy", ".."])
def test_states_outside_of_the_folder_are_refused(named: str, file: Path) -> None:
    reader = CertifiedRun.open(read_certificate(file), file.parent, None).states
    assert reader is not None
    record = StateRecord(step=12, file=named, digest="0" * 32)
    with pytest.raises(CertificateError, match=r"names a state outside of its folder: .* Fix: .*`inputs=`"):
        reader.read(record)


@pytest.mark.parametrize("whole", [True, False])
def test_links_that_lead_out_of_the_folder_are_refused(
    whole: bool, file: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside") / "states"
    states = file.parent / "states"
    if whole:
        states.rename(outside)
        states.symlink_to(outside)
    else:
        (states / state_name(12)).rename(outside)
        (states / state_name(12)).symlink_to(outside)
    certificate = read_certificate(file)
    reader = CertifiedRun.open(certificate, file.parent, None).states
    assert reader is not None
    with pytest.raises(FileError, match="is a link that leads out of"):
        reader.require(segments_of(certificate), lambda _: None)


def test_states_are_found_beside_the_inputs_of_another_folder(file: Path, tmp_path: Path) -> None:
    (tmp_path / "moved").mkdir()
    moved = tmp_path / "moved" / "c.json"
    file.rename(moved)
    certificate = read_certificate(moved)
    reader = CertifiedRun.open(certificate, moved.parent, tmp_path).states
    assert reader is not None
    seen: list[int] = []
    reader.require(segments_of(certificate), seen.append)
    assert len(seen) == 3
