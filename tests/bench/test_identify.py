"""The identifiability benchmark: systems that are what they say, honest data, learners that find what they can."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from dashi.bench.identify.completion import completion
from dashi.bench.identify.learners import LEARNERS, Rows, Rule, fit, gaussians, joined, learn
from dashi.bench.identify.study import Outcome, StudySetting, identify, observe, onset, settings, spread
from dashi.bench.identify.systems import (
    SYSTEMS,
    System,
    coupled_oscillators,
    graph_laplacian,
    reaction_diffusion,
    tree_bands,
    waves,
)
from dashi.cli.main import app
from dashi.errors import InputError
from dashi.runtime._cpu_device import CpuDevice
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.runtime.device import Device

EACH_SYSTEM = pytest.mark.parametrize("make", SYSTEMS.values(), ids=SYSTEMS.keys())


def band_step(energy: Any) -> Any:
    """The equation of the specification, node by node, with its absolute values."""
    leak, spread_by = (0.01, 0.015, 0.02), (0.22, 0.12, 0.05)
    c = 0.06 * np.array([[0.0, 1.0, -0.7], [-0.8, 0.0, 0.7], [0.8, -1.0, 0.0]])
    nodes = len(energy)
    diffused = np.empty_like(energy)
    for v in range(nodes):
        near = [w for w in ((v - 1) // 2, 2 * v + 1, 2 * v + 2) if 0 <= w < nodes and (v > 0 or w > 0)]
        for b in range(3):
            exchange = sum(energy[v, b] - energy[w, b] for w in near)
            diffused[v, b] = (1 - leak[b]) * energy[v, b] - spread_by[b] * exchange
    result = diffused.copy()
    for b in range(3):
        for other in range(3):
            if other != b:
                result[:, b] += c[b, other] * np.tanh(energy[:, other]) * np.abs(diffused[:, other])
    return result


def test_the_tree_takes_the_steps_of_its_equation() -> None:
    system = tree_bands()
    for seed in range(3):
        path = system.trajectory(system.start(np.random.default_rng(seed)), 100)
        assert path.min() > 0  # what the terms of the dictionary rest on
        for t in (0, 1, 50, 99):
            np.testing.assert_allclose(path[t + 1], band_step(path[t]), atol=1e-14)


def test_the_reaction_takes_the_steps_of_its_equation() -> None:
    system = reaction_diffusion()
    path = system.trajectory(system.start(np.random.default_rng(0)), 5)
    u, v = path[-2].T
    lu, lv = (2 * x - np.roll(x, 1) - np.roll(x, -1) for x in (u, v))
    made = np.stack([u - 0.16 * lu - u * v**2 + 0.035 * (1 - u), v - 0.08 * lv + u * v**2 - 0.095 * v], axis=-1)
    np.testing.assert_allclose(path[-1], made, atol=1e-14)


def test_the_laplacian_of_a_path_is_the_second_difference() -> None:
    laplacian = graph_laplacian(4, [(0, 1), (1, 2), (2, 3)])
    assert (laplacian @ np.array([1.0, 2.0, 4.0, 8.0])).tolist() == [-1.0, -1.0, -2.0, 4.0]


@EACH_SYSTEM
def test_rows_are_only_of_sites_whose_neighbours_are_seen(make: Any) -> None:
    system: System = make()
    every, some = (observe(system, StudySetting(system.name, f, 0.0), np.random.default_rng(2)) for f in (1.0, 0.3))
    assert len(every) == 1500
    assert 200 <= len(some) < len(every)
    for rows in (every, some):
        # Without noise every row obeys the truth exactly: nothing unseen was put in.
        np.testing.assert_allclose(system.terms(rows.own, rows.diffused) @ system.truth, rows.increment, atol=1e-13)


def test_noise_is_a_part_of_the_deviation_of_the_data() -> None:
    system = tree_bands()
    clean, noisy = (observe(system, StudySetting("tree", 1.0, n), np.random.default_rng(2)) for n in (0.0, 0.1))
    # The same draws of starts, sites and rows; the deviation is taken along each trajectory, so it is not the rows'.
    assert np.std(noisy.own - clean.own, axis=0) == pytest.approx(0.1 * np.std(clean.own, axis=0), rel=0.15)


@pytest.mark.parametrize("make", [tree_bands, reaction_diffusion], ids=["tree", "reaction"])
def test_without_noise_the_dictionary_finds_the_operator_and_the_others_do_not(device: Device, make: Any) -> None:
    system: System = make()
    by_name = {o.learner: o for o in identify(settings([system.name], [0.3], [0.0]), [0], device=device)}
    best = by_name["dictionary"].measures
    assert best["coefficients"] < 1e-4
    assert max(best["operator"], best["one_step"], best["rollout"]) < 1e-4
    for name in ("rbf", "linear", "persistence"):
        measures = by_name[name].measures
        assert min(measures[m] for m in ("operator", "one_step", "rollout")) > 100 * best["rollout"]
        assert np.isnan(measures["coefficients"])
    assert by_name["persistence"].measures["one_step"] == pytest.approx(1.0)
    assert by_name["rbf"].measures["one_step"] < by_name["linear"].measures["one_step"]


def test_oscillators_and_waves_take_the_steps_of_their_equations() -> None:
    rng = np.random.default_rng(0)
    oscillators, sea = coupled_oscillators(), waves()
    z = rng.normal(size=48) + 1j * rng.normal(size=48)
    lz = 2 * z - np.roll(z, 1) - np.roll(z, -1)
    step = 0.1 * ((1 + 2j) * z - (1 + 0.5j) * np.abs(z) ** 2 * z - 0.3 * lz)
    increment = oscillators.increment(np.stack([z.real, z.imag], axis=-1))
    np.testing.assert_allclose(increment, np.stack([step.real, step.imag], axis=-1), atol=1e-13)
    h, s = rng.normal(size=(2, 48))
    lh, ls = (2 * x - np.roll(x, 1) - np.roll(x, -1) for x in (h, s))
    right = np.stack([0.1 * s, 0.1 * (-4 * lh - 0.2 * h**3 - 0.05 * s) - 0.12 * ls], axis=-1)
    np.testing.assert_allclose(sea.increment(np.stack([h, s], axis=-1)), right, atol=1e-13)
    for system in (oscillators, sea):
        path = system.trajectory(system.start(rng), 400)
        assert np.isfinite(path).all()
        assert np.abs(path).max() < 20


def test_the_true_rule_fills_in_waves_that_were_not_seen_and_none_fills_in_nothing() -> None:
    system, setting = waves(), StudySetting("waves", 0.6, 0.0)
    right = Rule(system.terms, system.truth, "")
    still = Rule(system.terms, 0 * system.truth, "")
    assert completion(system, right, setting, np.random.default_rng(1)) < 0.1
    assert completion(system, still, setting, np.random.default_rng(1)) > 0.5
    assert np.isnan(completion(system, right, StudySetting("waves", 1.0, 0.0), np.random.default_rng(1)))


def test_the_onset_is_where_the_operator_is_found_from_then_on() -> None:
    asked = settings(["oscillators"], [1.0], [0.01], [20, 100, 400])
    with CpuDevice() as cpu:
        outcomes = [*identify(asked, [0], device=cpu, learners=["dictionary"])]
    errors = [o.measures["operator"] for o in outcomes]
    assert errors[0] > errors[-1]
    least = onset(asked, outcomes, "dictionary")
    assert least == next(s.rows for s, e in zip(asked, errors, strict=True) if e <= 0.1)
    assert onset(asked, outcomes, "linear") is None
    with pytest.raises(InputError, match="5 rows were asked for"):
        settings(["tree"], [1.0], [0.0], [5])


def test_with_noise_the_dictionary_is_wrong_by_about_the_noise() -> None:
    with CpuDevice() as cpu:
        [one] = identify(settings(["tree"], [1.0], [0.01]), [0], device=cpu, learners=["dictionary"])
    assert 1e-3 < one.measures["one_step"] < 0.1


def test_the_radial_basis_learner_interpolates_what_is_smooth(device: Device) -> None:
    rng = np.random.default_rng(1)

    def truth(x: Any) -> Any:
        return np.sin(2 * x[:, :1]) * np.cos(x[:, 1:2])

    x = rng.uniform(-1, 1, (400, 2))
    features = gaussians(x[:100, :], np.ones(2), 1.0)
    rows = Rows(x[:, :1], x[:, 1:], truth(x), np.zeros(400, np.int64))
    made = fit(features, rows, 1e-12, device)
    fresh = rng.uniform(-0.9, 0.9, (50, 2))
    assert np.abs(features(fresh[:, :1], fresh[:, 1:]) @ made - truth(fresh)).max() < 1e-3


def test_rules_have_the_same_bits_on_every_device(vulkan: VulkanDevice) -> None:
    system = reaction_diffusion()
    rows = observe(system, StudySetting("reaction", 0.3, 0.01), np.random.default_rng(4)).part(slice(0, 300))
    with CpuDevice() as cpu:
        for name in ("dictionary", "linear"):
            ours, reference = (learn(name, system, rows, np.random.default_rng(0), d) for d in (vulkan, cpu))
            assert ours.settings == reference.settings
            assert ours.coefficients.tobytes() == reference.coefficients.tobytes()


def test_a_rule_that_runs_away_is_counted_and_enters_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    import dashi.bench.identify.study as module

    wild = module.Rule(lambda own, diffused: own, 0.5 * np.eye(3), "")
    monkeypatch.setattr(module, "learn", lambda *_: wild)
    with CpuDevice() as cpu:
        [one] = identify(settings(["tree"], [1.0], [0.0]), [0], device=cpu, learners=["linear"])
    assert (one.measures["diverged"], one.measures["rollout"]) == (1.0, 1.0)


def test_spread_is_mean_deviation_and_range() -> None:
    over = spread([1.0, 3.0])
    assert over is not None
    assert (over.mean, over.deviation, over.least, over.most) == (2.0, 1.0, 1.0, 3.0)
    assert spread([float("nan")]) is None


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((["lorenz"], [1.0], [0.0]), "no system 'lorenz'. Fix: use one of tree, reaction"),
        ((["tree"], [0.0], [0.0]), "fraction of 0.0 of the sites cannot be observed. Fix"),
        ((["tree"], [1.0], [1.0]), "noise is 1.0. Fix"),
    ],
)
def test_settings_that_mean_nothing_are_errors(arguments: Any, text: str) -> None:
    with pytest.raises(InputError, match=text):
        settings(*arguments)


def test_too_little_to_learn_from_is_an_error() -> None:
    system = reaction_diffusion()
    with pytest.raises(InputError, match=r"0.05 of the sites observed only 0 steps.*Fix: observe a larger"):
        observe(system, StudySetting("reaction", 0.05, 0.0), np.random.default_rng(0))
    rows = observe(system, StudySetting("reaction", 1.0, 0.0), np.random.default_rng(0))
    with CpuDevice() as cpu, pytest.raises(InputError, match="no learner 'oracle'"):
        learn("oracle", system, rows, np.random.default_rng(0), cpu)
    assert len(joined([rows, rows])) == 2 * len(rows)


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["bench", "identify", "--device", "cpu", *arguments])


def test_the_command_prints_a_row_for_each_setting_and_learner(monkeypatch: pytest.MonkeyPatch) -> None:
    small = ("--system", "tree", "--observed", "0.3", "--noise", "0", "--seeds", "1")
    entries = list[Outcome]()

    def noted(asked: Any, seeds: Any, *, device: Device) -> Iterator[Outcome]:
        for outcome in identify(asked, seeds, device=device):
            entries.append(outcome)
            yield outcome

    monkeypatch.setattr("dashi.bench.identify.study.identify", noted)
    done = run(*small, "--json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document["schema"] == 1
    assert [row["learner"] for row in document["rows"]] == list(LEARNERS)
    first = document["rows"][0]
    assert (first["system"], first["observed"], first["noise"], first["seeds"]) == ("tree", 0.3, 0.0, [0])
    assert set(first["operator"]) == {"mean", "deviation", "least", "most"}
    assert document["rows"][1]["coefficients"] is None
    # What was found is told a second time, for people; it need not be found again.
    monkeypatch.setattr("dashi.bench.identify.study.identify", lambda *asked, device: iter(entries))
    done = run(*small)
    assert done.exit_code == 0
    assert "dictionary knows candidate terms" in done.stderr
    assert done.stdout.splitlines()[0].split()[0] == "system"


def test_the_command_passes_on_what_is_wrong() -> None:
    done = run("--observed", "2")
    assert (done.exit_code, "a fraction of 2.0 of the sites" in done.stderr) == (3, True)
