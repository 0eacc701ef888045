"""The studies of sampling, in miniature."""

import pathlib

import numpy as np
import pytest

from gdlx.experiments.studies import baselines


def test_baselines_on_an_unrolled_game(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    points = (4_096, 16_384)
    plain, reduced = (baselines.exact_curve("kuhn_poker", decay, 2, points) for decay in (None, 0.3))
    assert plain.error.shape == reduced.error.shape == (2, 2)
    assert (reduced.mean < 0.2).all()
    baselines.report("kuhn_poker", plain, reduced)
    assert "16,384" in capsys.readouterr().out
    baselines.draw_figure(tmp_path / "baselines.png", [("kuhn_poker", plain, reduced)])
    assert (tmp_path / "baselines.png").stat().st_size > 10_000


@pytest.mark.slow
def test_bounds_are_cached(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baselines, "BOUNDED_BATCH", 64)
    monkeypatch.setattr(baselines, "_RESPONSE", 2)
    monkeypatch.setattr(baselines, "_BITS", 8)
    monkeypatch.setattr(baselines, "BOUNDED_GAMES", ("kuhn_poker",))
    monkeypatch.setattr(baselines, "BOUNDED_POINTS", (1_024,))
    cache = tmp_path / "cache.json"
    errors = list(baselines.bounded_curves("kuhn_poker", 1, None, (1_024,)))[-1]
    assert errors.shape == (1, 2, 1)
    assert (np.abs(errors) < 2).all()
    baselines.save_errors(cache, "kuhn_poker", errors)
    ((_, plain, reduced),) = baselines.run_study(["kuhn_poker"], 1, 1, cache)  # nothing is measured again
    assert (plain.error[0, 0], reduced.error[0, 0]) == (errors[0, 0, 0], errors[0, 1, 0])
    monkeypatch.setattr(baselines, "DECAY", 0.5)
    assert baselines.load_errors(cache, "kuhn_poker") is None
