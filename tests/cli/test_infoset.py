"""The command `infoset`: counts, samples, examples, and what it refuses."""

import json
import pathlib
import subprocess

import pytest

from gdlx.propnet import games
from gdlx.propnet.observations import positions
from gdlx.tests.helpers import commands, observations

POSITION = ("phantom_tictactoe", "--player", "o", "--moves", "6", "--seed", "7")


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return commands.run("infoset", *arguments, cwd=pathlib.Path.cwd())


def number_of_histories() -> int:
    net = games.compile_game("phantom_tictactoe")
    position = positions.random_position(net, 1, 6, seed=7)
    return len(observations.list_histories(net, 1, position.events))


@pytest.mark.parametrize(
    "options", [(), ("--count",), ("--way", "enumerate"), ("--way", "sat"), ("--way", "guided"), ("--way", "particles")]
)
def test_ways(options: tuple[str, ...]) -> None:
    ran = run(*POSITION, *options, "--json")
    assert (ran.returncode, ran.stderr) == (0, "")
    result = json.loads(ran.stdout)
    expected = number_of_histories()
    assert expected > 10
    if options[-1:] in (("guided",), ("particles",)):
        assert result["histories"] is None
        assert result["distinct"] <= expected
        assert 1 < result["effective_sample_size"] <= expected
    else:
        assert (result["histories"], result["complete"], result["biased"]) == (expected, True, False)
    if options[-1:] != ("particles",):
        assert len(result["examples"]) == 3
        assert all(len(example) == 6 for example in result["examples"])


def test_text() -> None:
    ran = run(*POSITION, "--stats")
    assert ran.returncode == 0
    assert f"histories    {number_of_histories():,} agree, exactly" in ran.stdout
    assert "choices left" in ran.stdout
    assert "example 1" in ran.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("phantom_tictactoe", "--player", "oo"), "has no player 'oo'"),
        (("phantom_tictactoe", "--player", "3"), "its players are x, o"),
        (("rps", "--player", "1", "--moves", "5"), "ends after 1 joint action"),
        ((*POSITION, "--count", "--way", "sat"), "leave out --way"),
        (("no_such_game", "--player", "1"), "no_such_game"),
    ],
)
def test_what_it_refuses(arguments: tuple[str, ...], message: str) -> None:
    ran = run(*arguments)
    assert ran.returncode in (1, 2)
    assert message in " ".join(ran.stderr.split())
    assert "Traceback" not in ran.stderr
