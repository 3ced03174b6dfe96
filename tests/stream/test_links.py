"""Links: every way brings the same bits, slots go round in order, and what cannot be had is refused or said."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from dashi import errors
from dashi.runtime import Device, Event, open_device
from dashi.stream import Field, PayloadSchema, calibrate
from dashi.stream._codecs import LinkCodec, wire_schema
from dashi.stream._link_memory import LinkWay
from dashi.stream._model import Codec
from dashi.stream._ring import Ring
from dashi.stream.links import Link, transfer_seconds

RNG = np.random.default_rng(18)
N = 1000
SCHEMA = PayloadSchema({"x": Field((N,)), "k": Field((7,), "i8")})


@pytest.fixture
def devices(vulkan: Device) -> Iterator[dict[str, Device]]:
    """Two logical devices of the software driver, and NumPy's."""
    with open_device("vulkan:0") as other, open_device("cpu") as cpu:
        yield {"one": vulkan, "two": other, "cpu": cpu}
        assert not getattr(getattr(other, "instance", None), "messages", None)


def hand_over_items(link: Link, items: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Sends items that the source's kernels write, reads them by kernels of the target, nothing waited for between."""
    source, target = link.source, link.target
    x = source.empty(N)
    k = [source.array(np.full(7, i, np.int8)) for i in range(items)]
    writers = [
        source.program([source.bind("scale", x, a=2.0, out=link.outgoing(b)["x"])], feed=[x])
        for b in range(link.window)
    ]
    readers = []
    for b in range(link.window):
        arrays = link.incoming(b)
        step = target.bind("scale", arrays["x"], a=1.0)
        k_own = target.empty(7, np.int8)
        copy = target.copy_step(arrays["k"], k_own)
        readers.append((target.program([step, copy], fetch=[step.outputs[0], k_own]), step.outputs[0], k_own))
    pending = []
    for t in range(items):
        slot = t % link.window
        if t >= link.window:
            pending[t - link.window] = tuple(pending[t - link.window][0].fetched(a) for a in readers[slot][1:])
        free = link.take(t)
        write = writers[slot].submit(after=free, feed={x: np.full(N, t, np.float32)})
        copied = source.copy(k[t], link.outgoing(t)["k"], free, by="transfer")
        arrived = link.send(t, after=[write, copied])
        link.receive(t)
        read = readers[slot][0].submit(after=arrived)
        link.release(t, after=[read])
        pending.append((read,))
    for t in range(max(0, items - link.window), items):
        pending[t] = tuple(pending[t][0].fetched(a) for a in readers[t % link.window][1:])
    return pending


WAYS: list[tuple[str, str, LinkWay, bool]] = [
    ("one", "one", "device", False),
    ("one", "two", "exported", False),
    ("one", "two", "host", False),
    ("one", "two", "host", True),
    ("one", "two", "staging", False),
    ("cpu", "one", "host", False),
    ("one", "cpu", "host", True),
    ("cpu", "one", "staging", False),
]


@pytest.mark.parametrize("window", [1, 3])
@pytest.mark.parametrize(("first", "second", "way", "own"), WAYS)
def test_each_way_brings_all_items_in_order(
    devices: dict[str, Device],
    first: str,
    second: str,
    way: LinkWay,
    own: bool,
    window: int,
) -> None:
    mode = "P2P" if way in ("device", "exported") else "HOST_STAGING"
    with Link(devices[first], devices[second], SCHEMA, window=window, way=way, own_memory=own) as link:
        assert (link.way, link.mode, link.window) == (way, mode, window)
        assert link.dma == ((1, 1) if way == "staging" or own else (0, 0))
        for t, (x, k) in enumerate(hand_over_items(link, 7)):
            assert (x == 2 * t).all()
            assert (k == t).all()
        assert link.values == (7, 7)


def test_the_best_way_is_taken_unless_a_mode_is_asked_for(devices: dict[str, Device]) -> None:
    with Link(devices["one"], devices["two"], 64) as link:
        assert link.way == "exported"
        assert list(link.schema) == ["bytes"]
        assert link.record() == {
            "source": "vulkan:0", "target": "vulkan:0", "asked": None, "mode": "P2P", "way": "exported",
            "fallback": False, "dma": [0, 0], "window": 3, "bytes": 64, "why": link.why, "codec": "none",
            "lossy": False,
        }  # fmt: skip
        assert link.why.startswith("exported: both logical devices are on one GPU")
        assert repr(link).startswith("<Link P2P (exported), window 3, 64 bytes:")


def test_p2p_that_cannot_be_had_is_refused_or_said(devices: dict[str, Device]) -> None:
    with pytest.raises(
        errors.UnsupportedOperationError,
        match=r"mode='P2P' cannot be had: .*opaque descriptors join logical devices.* Fix: use mode='HOST_STAGING'",
    ):
        Link(devices["cpu"], devices["one"], 64, mode="P2P")
    with Link(devices["cpu"], devices["one"], 64, mode="P2P", strict=False) as link:
        assert link.mode == "HOST_STAGING"
        assert link.record()["fallback"]
        assert "P2P was asked for and HOST_STAGING stands in" in link.why


def test_a_way_that_the_two_do_not_have_is_refused(devices: dict[str, Device]) -> None:
    with pytest.raises(errors.UnsupportedOperationError, match=r"by way='exported'\. Fix: .* one of 'host', 'staging'"):
        Link(devices["cpu"], devices["one"], 64, way="exported")
    with pytest.raises(errors.UnsupportedOperationError, match=r"by way='host' in mode='P2P'"):
        Link(devices["one"], devices["two"], 64, way="host", mode="P2P")


def test_numpy_devices_compute_in_the_memory_that_they_share(devices: dict[str, Device]) -> None:
    with open_device("cpu") as other, Link(devices["cpu"], other, 64, mode="P2P") as link:
        assert (link.way, link.mode, link.dma) == ("host", "P2P", (0, 0))
        assert not link.record()["fallback"]


@pytest.mark.parametrize("mode", ["RDMA", "TCP"])
def test_devices_of_one_machine_have_no_network_between_them(devices: dict[str, Device], mode: str) -> None:
    with pytest.raises(errors.UnsupportedOperationError, match=rf"mode='{mode}'.*Fix: name P2P or HOST_STAGING"):
        Link(devices["cpu"], devices["one"], 64, mode=mode)  # type: ignore[arg-type]


def test_a_driver_that_refuses_what_it_offers_is_worked_round(
    devices: dict[str, Device], monkeypatch: pytest.MonkeyPatch
) -> None:
    from dashi.stream import _link_memory as memory

    real = memory.shared_memory

    def refuse(first: Device, second: Device, nbytes: int, mode: str) -> object:
        if mode != "staging":
            raise errors.VulkanError("no such luck.", "none.")
        return real(first, second, nbytes, "staging")

    monkeypatch.setattr(memory, "shared_memory", refuse)
    with Link(devices["one"], devices["cpu"], 64) as link:
        assert link.way == "staging"
        assert link.notes == ("host memory could not be made, staging stands in: no such luck.",)
    with pytest.raises(errors.VulkanError):
        Link(devices["one"], devices["two"], 64, mode="P2P")


def test_a_slot_is_not_used_again_before_its_consumer_has_released_it(devices: dict[str, Device]) -> None:
    """Steps 0 and 2 share a slot: what writes step 2 waits on the device for the consumer of step 0."""
    with Link(devices["one"], devices["two"], {"x": Field((N,))}, window=2) as link:
        source, target = link.source, link.target
        fill = [source.program([source.fill_step(link.outgoing(t)["x"], float(t))]) for t in range(3)]
        arrived = [link.send(t, after=[fill[t].submit(after=link.take(t))]) for t in range(2)]
        with pytest.raises(
            errors.BusyError, match=r"all 2 slots .* step 2 needs that of step 0, .* Fix: take items out"
        ):
            link.take(2)
        go: Event = target.event("look")
        step = target.bind("scale", link.receive(0)["x"], a=1.0)
        reader = target.program([step], fetch=step.outputs)
        read = reader.submit(after=[*arrived[0], go])
        link.release(0, after=[read])
        written = fill[2].submit(after=link.take(2))
        assert not written.done
        assert not read.done
        go.signal()
        assert (read.fetched(step.outputs[0]) == 0).all()
        written.wait()
        assert (link.outgoing(2)["x"].numpy() == 2).all()


def test_rings_hold_producer_and_consumer_to_their_order() -> None:
    ring = Ring(2, "the link")
    with pytest.raises(errors.InputError, match=r"step 1 of the link is written, where step 0 is next"):
        ring.take(1)
    with pytest.raises(errors.InputError, match=r"step 0 of the link has no slot yet"):
        ring.sent(0)
    assert ring.take(0) == []
    with pytest.raises(errors.BusyError, match=r"step 0 of the link was not sent yet: 0 were"):
        ring.receive(0)
    ring.sent(0)
    with pytest.raises(errors.InputError, match=r"released, but was not received"):
        ring.release(0, [])
    ring.receive(0)
    ring.release(0, [])
    with pytest.raises(errors.InputError, match=r"step 0 of the link is released, where step 1 is next"):
        ring.release(0, [])
    assert ring.values == (1, 1)
    with pytest.raises(
        errors.InputError, match=r"a window of 0 slots lets nothing through the link\. Fix: pass `window=`"
    ):
        Ring(0, "the link")


def test_a_closed_link_says_so(devices: dict[str, Device]) -> None:
    link = Link(devices["cpu"], devices["one"], 16)
    link.close()
    link.close()
    with pytest.raises(errors.ClosedError, match="is closed"):
        link.take(0)


TRITS = RNG.integers(-1, 2, 70_000).astype(np.int8)
NUMBERS = RNG.standard_normal(70_000).astype(np.float32)


def sent_and_received(
    devices: dict[str, Device], schema: PayloadSchema, values: np.ndarray, **options: object
) -> np.ndarray:
    with Link(devices["one"], devices["two"], schema, **options) as link:  # type: ignore[arg-type]
        link.outgoing(0)["x"].write(values)
        link.take(0)
        for ticket in link.send(0):
            ticket.wait()
        return link.receive(0)["x"].numpy()


def test_planes_bring_ternary_fields_unchanged_in_a_quarter_of_the_bytes(devices: dict[str, Device]) -> None:
    schema = PayloadSchema({"x": Field((700, 100), "i8")})
    values = TRITS.reshape(700, 100)
    assert np.array_equal(sent_and_received(devices, schema, values, codec="planes"), values)
    record = LinkCodec("planes", schema).record()
    assert record == {"codec": "planes", "lossy": False, "bytes": [70_000, 18_072], "fields": ["x"]}


@pytest.mark.parametrize("codec", ["f16", "bf16"])
def test_narrow_codecs_round_and_say_that_they_lose(devices: dict[str, Device], codec: str) -> None:
    schema = PayloadSchema({"x": Field((70_000,))})
    got = sent_and_received(devices, schema, NUMBERS, codec=codec)
    if codec == "f16":
        assert np.array_equal(got, NUMBERS.astype(np.float16).astype(np.float32))
    else:
        assert np.abs(got - NUMBERS).max() <= 2.0**-8 * np.abs(NUMBERS).max()
    record = LinkCodec(codec, schema).record()  # type: ignore[arg-type]
    assert record == {"codec": codec, "lossy": True, "bytes": [280_000, 140_000], "fields": ["x"]}


def test_prune_keeps_the_largest(devices: dict[str, Device]) -> None:
    schema = PayloadSchema({"x": Field((70_000,)), "k": Field((3,), "u32")})
    got = sent_and_received(devices, schema, NUMBERS, codec="prune", codec_options={"keep": 0.1})
    order = np.argsort(-np.abs(NUMBERS), kind="stable")
    expected = np.zeros_like(NUMBERS)
    expected[order[:7000]] = NUMBERS[order[:7000]]
    assert np.array_equal(got, expected)
    record = LinkCodec("prune", schema, {"keep": 0.1}).record()
    assert record == {"codec": "prune", "lossy": True, "bytes": [280_012, 56_012], "fields": ["x"], "keep": 0.1}


def test_codecs_refuse_what_they_are_not_for() -> None:
    schema = PayloadSchema({"x": Field((8,))})
    with pytest.raises(errors.InputError, match=r"codec 'planes' is for fields of i8, and the payload has none"):
        LinkCodec("planes", schema)
    with pytest.raises(errors.InputError, match=r"codec='zip' is none of"):
        LinkCodec("zip", schema)  # type: ignore[arg-type]
    with pytest.raises(errors.InputError, match=r"codec 'f16' has no option 'keep'"):
        LinkCodec("f16", schema, {"keep": 0.5})
    with pytest.raises(errors.InputError, match=r"prune keeps a share of 0\. Fix:"):
        LinkCodec("prune", schema, {"keep": 0.0})


@pytest.mark.parametrize(("codec", "part", "dtype"), [("prune", "values", "f32"), ("f16", "f16", "f16")])
@pytest.mark.parametrize("swapped", [False, True])
def test_fields_named_like_parts_of_others_are_refused(codec: Codec, part: str, dtype: str, swapped: bool) -> None:
    fields = {"x": Field((8,)), f"x.{part}": Field((8,), dtype)}
    schema = PayloadSchema(dict(reversed(fields.items())) if swapped else fields)
    message = (
        rf"codec '{codec}' sends the field 'x' as 'x\.{part}', and the payload has a field of that name\. Fix: call"
    )
    with pytest.raises(errors.InputError, match=message):
        LinkCodec(codec, schema)
    with pytest.raises(errors.InputError, match=message):
        wire_schema(codec, schema)
    assert LinkCodec("none", schema).wire == schema


@pytest.mark.parametrize(("mode", "own"), [("P2P", None), ("HOST_STAGING", None), ("HOST_STAGING", True)])
def test_links_measure_their_rates(devices: dict[str, Device], mode: str, own: bool | None) -> None:
    with Link(devices["one"], devices["two"], 1 << 16, mode=mode, own_memory=own) as link:  # type: ignore[arg-type]
        rate = link.measure(seconds=0.01)
    assert rate.nbytes == 1 << 16
    assert rate.items >= 9
    assert rate.gb_per_s > 0
    assert 0 < rate.latency < 10
    assert rate.seconds(1 << 16) == pytest.approx(rate.latency + (1 << 16) / rate.bandwidth)


def test_calibration_takes_times_of_links(devices: dict[str, Device]) -> None:
    assert 0 < transfer_seconds(devices["one"], devices["two"], 1 << 12) < 10
    found = calibrate(["cpu"], links=True, fresh=True, measure_link=lambda first, second, nbytes: 1e-3 + nbytes * 1e-9)
    for link in found.links.values():
        assert link.bandwidth == pytest.approx(1e9, rel=1e-3)
