"""The studies of sampling, in miniature."""

import pathlib

import pytest

from gdlx.experiments import baseline_study, batch_study


def test_baselines_on_an_unrolled_game(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    points = (4_096, 16_384)
    plain, reduced = (baseline_study.exact_curve("kuhn_poker", decay, 2, points) for decay in (None, 0.3))
    assert plain.error.shape == reduced.error.shape == (2, 2)
    assert (reduced.mean < 0.2).all()
    baseline_study.report("kuhn_poker", plain, reduced)
    assert "16,384" in capsys.readouterr().out
    baseline_study.picture(tmp_path / "baselines.png", [("kuhn_poker", plain, reduced)])
    assert (tmp_path / "baselines.png").stat().st_size > 10_000


def test_batch_sizes() -> None:
    run = baseline_study.unrolled("kuhn_poker").run(64, None, 0)
    found = batch_study.measure(run, 4_096, 0.01)
    assert found.rate > 0
    assert 0 < found.at_trajectories < 0.5
    assert 0 < found.at_seconds < 0.5
