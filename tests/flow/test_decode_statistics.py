"""Statistics of the scales that z does not hold: fitted, kept in a file, and found again in what is drawn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dashi.errors import FileError, InputError, ShapeError
from dashi.flow import Flow, ensemble, to_field
from dashi.flow.decode import Decoder, Statistics, fit_statistics, load_statistics, save_statistics
from dashi.flow.proxy.encode import encode
from dashi.flow.proxy.schema import Schema
from dashi.runtime._cpu_device import CpuDevice

N = 64


@pytest.fixture(scope="module")
def fields() -> np.ndarray:
    """Random fields that vary more along x: a filter takes away what varies along y."""
    made = np.asarray(to_field(ensemble(Flow(N), "random", range(8), peak=10.0)))
    ky = np.fft.fftfreq(N, 1 / N)[:, None]
    return np.fft.irfft2(np.fft.rfft2(made) * np.exp(-((ky / 8) ** 2)), (N, N))


@pytest.fixture(scope="module")
def schema() -> Schema:
    return Schema(N, 6)


def drawn(schema: Schema, statistics: Statistics, fields: np.ndarray) -> np.ndarray:
    """Residuals of many frames."""
    with CpuDevice() as cpu:
        z = encode(schema, fields[0].astype(np.float64), device=cpu)
        decoder = Decoder(schema, cpu, residual="statistics", gate="open", statistics=statistics, dtype="float64")
        entries = []
        for frame in range(12):
            decoder.decode(z, "metrics", frame=frame)
            entries.append(decoder.pipeline.residual.numpy()[0])
    return np.array(entries)


def test_what_is_drawn_has_the_spectrum_anisotropy_and_length_of_the_data(fields: np.ndarray, schema: Schema) -> None:
    fitted = fit_statistics(schema, fields)
    assert fitted.lengths[0] < 0.9 * fitted.lengths[1]  # it varies faster along x
    statistics = fit_statistics(schema, drawn(schema, fitted, fields))
    mid = slice(7, 15)  # shells with energy and many modes
    # Means over twelve draws of some forty modes in a shell: about 5 %. The bands have the energies of one field, not
    # of the mean one, so spectra are compared within the band by their shape.
    shape, wanted = (s.spectrum[7:9] / s.spectrum[7:9].sum() for s in (statistics, fitted))
    assert np.allclose(shape, wanted, rtol=0.2)
    assert np.abs(statistics.anisotropy[mid] - fitted.anisotropy[mid]).max() < 0.25
    assert np.allclose(statistics.lengths, fitted.lengths, rtol=0.1)


def test_statistics_of_a_coarse_grid_go_on_to_finer_ones(fields: np.ndarray, schema: Schema) -> None:
    fitted = fit_statistics(schema, fields)
    fine = fitted.amplitude(Schema(128, 6))
    coarse = fitted.amplitude(schema)
    assert np.allclose(fine[:21, :22], coarse[:21, :22], rtol=1e-12)
    beyond = fine[0, len(fitted.spectrum) : 43]
    assert (np.diff(beyond) < 0).all()
    assert (beyond > 0).all()


def test_statistics_come_back_from_their_file(fields: np.ndarray, schema: Schema, tmp_path: Path) -> None:
    fitted = fit_statistics(schema, fields)
    save_statistics(tmp_path / "s.npz", fitted)
    again = load_statistics(tmp_path / "s.npz")
    assert np.array_equal(again.amplitude(schema), fitted.amplitude(schema))
    assert again.lengths == fitted.lengths
    assert (tmp_path / "s.npz").stat().st_size < 10_000


def test_damaged_and_foreign_statistics_are_refused(fields: np.ndarray, schema: Schema, tmp_path: Path) -> None:
    fitted = fit_statistics(schema, fields)
    path = tmp_path / "s.npz"
    save_statistics(path, fitted)
    arrays = dict(np.load(path))
    np.savez(path, **{**arrays, "version": np.array(9)})
    with pytest.raises(FileError, match=r"statistics of version 9\. Fix: fit them anew"):
        load_statistics(path)
    np.savez(path, **{**arrays, "version": np.array("one")})
    with pytest.raises(FileError, match="statistics of version one"):
        load_statistics(path)
    np.savez(path, **{**arrays, "spectrum": np.full(4, np.nan)})
    with pytest.raises(FileError, match="no statistics of a flow"):
        load_statistics(path)
    np.savez(path, spectrum=arrays["spectrum"])
    with pytest.raises(FileError, match=r"anisotropy is missing. Fix: name a file of save_statistics"):
        load_statistics(path)
    with pytest.raises(InputError, match="statistics are of a box of"):
        fitted.amplitude(Schema(N, 6, length=1.0))
    with pytest.raises(ShapeError, match="the schema is for 64 x 64 points"):
        fit_statistics(schema, np.zeros((32, 32)))
    with pytest.raises(InputError, match="not finite"):
        fit_statistics(schema, np.full((N, N), np.nan))
    with pytest.raises(InputError, match="nothing beyond k_cut"):
        fit_statistics(schema, np.zeros((N, N)))
