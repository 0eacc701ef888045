"""The command `train`: what it refuses, and that it writes nothing then."""

import pathlib

import pytest

from gdlx import cli


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("train", "kuhn_poker", "--learner", "magic"), "there are self-play, deep-cfr, supervised"),
        (("train", "kuhn_poker", "--set", "magic=1"), "has no setting 'magic'; there are games"),
        (("train", "kuhn_poker", "--set", "games"), "takes each setting once"),
        (("train", "kuhn_poker", "--set", "games=many"), "games of self-play takes a whole number, not 'many'"),
        (("train", "kuhn_poker", "--set", "kind=magic"), "takes mlp or residual, not 'magic'"),
        (("train", "kuhn_poker", "--set", "widths=8,x"), "takes whole numbers with commas between, not '8,x'"),
        (("train", "kuhn_poker", "--set", "widths=0"), "widths are one or more sizes"),
        (("train", "kuhn_poker", "--learner", "supervised", "--set", "spread=1"), "takes 2 numbers with commas"),
        (("train", "kuhn_poker", "--learner", "supervised", "--set", "spread=2,1"), "the lower one first; not 2,1"),
        (("train", "kuhn_poker", "--learner", "supervised", "--set", "batch=0"), "batch must be 1 or more, not 0"),
        (("train", "kuhn_poker", "--learner", "supervised", "--set", "capacity=8"), "make the capacity 64 or more"),
        (("train", "kuhn_poker", "--learner", "deep-cfr", "--max-nodes", "5"), "--learner self-play"),
        (("train", "kuhn_poker", "--learner", "deep-cfr", "--set", "widths=0"), "widths are one or more sizes"),
        (("train", "kuhn_poker", "--learner", "deep-cfr", "--set", "traversals=1000000000"), "take fewer traversals"),
        (("train", "kuhn_poker", "--set", "widths=1000000,1000000"), "make widths smaller"),
        (("train", "kuhn_poker", "--set", "learning_rate=1e30", "--iterations", "1"), "is not a finite number"),
        (("train", "kuhn_poker", "--minutes", "0"), "the time must be more than 0 seconds"),
        (("train",), "name a GAME"),
        (("train", "--resume", "nowhere"), "holds no networks"),
        (("match", "kuhn_poker", "network:nowhere", "random"), "holds no networks"),
    ],
)
def test_bad_input(
    arguments: tuple[str, ...],
    words: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(list(arguments)) != 0
    assert words in " ".join(capsys.readouterr().err.split())
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
