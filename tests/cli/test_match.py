"""The commands match, tournament and play, as a newcomer runs them."""

import csv
import io
import json
import pathlib
import signal
import subprocess
import sys
import time
from typing import Any

import pytest

from gdlx import cli
from gdlx.cli import match_runs
from gdlx.envs import compilation_cache
from gdlx.players.agents import entries
from gdlx.players.matches import contest
from gdlx.solvers.runs import result_folder

GDLX = [sys.executable, "-m", "gdlx.cli"]


@pytest.fixture(autouse=True)
def _alone(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in a separate folder, without changing the settings of jax for other tests."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(compilation_cache, "enable", lambda: None)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.main(arguments)
    out, err = capsys.readouterr()
    return code, out, err


def type_in(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))


def test_a_match_from_the_first_command_to_its_files(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "match", "kuhn_poker", "random", "random", "--games", "100")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].split() == ["agent", "role", "games", "payoff", "goal", "won", "drawn", "lost"]
    assert [line.split()[0] for line in lines[1:7]] == ["random", "player1", "player2"] * 2
    assert "result in results/kuhn_poker/match-random-vs-random" in lines[-1]
    folder = pathlib.Path("results/kuhn_poker/match-random-vs-random")
    rows = list(csv.DictReader((folder / "games.csv").open()))
    assert [int(row["game"]) for row in rows] == list(range(100))
    assert all(int(row["goal_player1"]) + int(row["goal_player2"]) == 100 for row in rows)
    assert {row["agent_player1"] for row in rows[::2]} == {"random"}
    assert {row["agent_player1"] for row in rows[1::2]} == {"random (2)"}
    config = json.loads((folder / "config.json").read_text())
    assert config["agents"] == ["random", "random"]
    assert set(config["versions"]) == {"gdlx", "jax", "numpy", "python"}

    # More games; the first hundred are kept.
    before = (folder / "games.csv").read_text()
    code, out, err = run(capsys, "match", "--resume", str(folder), "--games", "130", "--json")
    assert (code, err) == (0, "")
    result = json.loads(out)
    assert (result["games"], result["games_now"], result["result"], result["interrupted"]) == (
        130,
        30,
        str(folder),
        False,
    )
    first = result["agents"][0]
    assert set(first) >= {"agent", "games", "payoff", "goal", "wins", "draws", "losses", "incidents", "roles"}
    assert first["payoff"]["interval"][0] < first["payoff"]["mean"] < first["payoff"]["interval"][1]
    assert first["wins"] + first["losses"] == 130
    assert (folder / "games.csv").read_text().startswith(before)
    assert json.loads((folder / "result.json").read_text())["games"] == 130

    # Fewer games, another seed and malformed lines are refused, and no games are lost.
    complete = (folder / "games.csv").read_text()
    code, _, err = run(capsys, "match", "--resume", str(folder), "--games", "50")
    assert (code, "--games cannot be fewer" in err) == (2, True)
    code, _, err = run(capsys, "match", "--resume", str(folder), "--seed", "5")
    assert (code, "leave out --seed" in err) == (2, True)
    for broken in (complete.replace("\n2,random", "\n2", 1), complete + complete.splitlines()[-1] + "\n"):
        (folder / "games.csv").write_text(broken)
        code, _, err = run(capsys, "match", "--resume", str(folder))
        assert (code, "games.csv cannot be read" in err) == (1, True)
    (folder / "games.csv").write_text(complete)
    with pytest.raises(result_folder.ResultError, match="other terms"):
        contest.compete("kuhn_poker", ["random", "random"], games=130, seed=9, folder=folder, resume=True)

    # A saved match is neither an agent nor a solution.
    code, _, err = run(capsys, "match", "kuhn_poker", "random", str(folder))
    assert (code, err) == (1, f"error: {folder} holds games between agents, not a solution\n")
    assert run(capsys, "evaluate", str(folder))[0] == 1
    code, _, err = run(capsys, "tournament", "--resume", str(folder))
    assert code == 1
    assert f"gdlx match --resume {folder}" in err


def test_a_match_in_a_separate_process(tmp_path: pathlib.Path) -> None:
    """Which also looks for running threads of agents when it exits."""
    command = [*GDLX, "match", "kuhn_poker", "random", "random", "--games", "4"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "4 games" in ran.stdout


def test_a_tournament(capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path) -> None:
    arguments = ("tournament", "simple_poker", "random", "random", "random", "--games", "8", "--seed", "2")
    code, out, _ = run(capsys, *arguments)
    assert code == 0
    assert "against random (2)" in out
    assert "24 games" in out
    folder = tmp_path / "results" / "simple_poker" / "tournament-random-vs-random-vs-random"
    assert {path.name for path in folder.iterdir()} >= {"config.json", "result.json", "crosstable.csv"}
    code, out, _ = run(capsys, "tournament", "--resume", str(folder), "--json")
    result = json.loads(out)
    assert (code, result["games_now"]) == (0, 0)
    assert result["standings"] == json.loads((folder / "result.json").read_text())["standings"]


def test_other_files_are_other_agents(capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path) -> None:
    def write_policy(iterations: int, name: str) -> None:
        assert cli.main(["solve", "kuhn_poker", "--iterations", str(iterations), "--quiet"]) == 0
        assert cli.main(["evaluate", f"results/kuhn_poker/{name}", "-o", "played.csv"]) == 0

    write_policy(10, "dcfr")
    code, _, err = run(capsys, "match", "kuhn_poker", "played.csv", "random", "--games", "32", "--quiet")
    assert code == 0, err
    folder = "results/kuhn_poker/match-played.csv-vs-random"
    assert run(capsys, "match", "--resume", folder, "--games", "64", "--quiet")[0] == 0
    write_policy(20, "dcfr-2")
    code, _, err = run(capsys, "match", "--resume", folder, "--games", "96")
    assert (code, "was played with other files of its agents" in " ".join(err.split())) == (1, True)
    assert len((tmp_path / folder / "games.csv").read_text().splitlines()) == 65


@pytest.mark.slow
def test_resuming_with_agents_that_learn_for_a_fixed_time_is_remarked(capsys: pytest.CaptureFixture[str]) -> None:
    quick = "mccfr:seconds=0.1,batch=32,table=8"
    assert run(capsys, "match", "kuhn_poker", quick, "random", "--games", "4", "--quiet")[0] == 0
    (folder,) = pathlib.Path("results/kuhn_poker").iterdir()
    code, _, err = run(capsys, "match", "--resume", str(folder), "--games", "8")
    assert (code, "learns for a fixed time before its first game" in " ".join(err.split())) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("match",), 2, "name a GAME and its AGENTs, or a folder to --resume"),
        (("match", "kuhn_poker", "random", "--resume", "x"), 2, "not both"),
        (("match", "kuhn_poker"), 1, "kuhn_poker has 2 players (player1, player2), and 0 agents were named"),
        (("match", "kuhn_poker", "random"), 1, "1 agent was named; name one for each"),
        (("match", "kuhn_poker", "random", "randum"), 1, "there is no agent 'randum' (is it random?)"),
        (("match", "kuhn_poker", "random", "mccfr:speed=1"), 1, "mccfr has no option 'speed'"),
        (("match", "kuhn_poker", "random", "results/x"), 1, "results/x is not a saved solution"),
        (("match", "kuhn_poker", "random", "x.csv"), 1, "x.csv does not exist: name the result folder"),
        (("match", "kuhn", "random", "random"), 1, "kuhn"),
        (("match", "kuhn_poker", "random", "random", "--games", "0"), 2, "--games"),
        (("match", "kuhn_poker", "random", "random", "--play-clock", "0"), 1, "the play clock must be"),
        (("match", "kuhn_poker", "random", "random", "--seed", str(2**63)), 2, "--seed"),
        (("match", "--resume", "nowhere"), 1, "nowhere holds no match"),
        (("match", "--resume", "nowhere", "--no-swap"), 2, "leave out --no-swap"),
        (("tournament", "kuhn_poker", "random"), 1, "needs 2 agents or more, and 1 was named"),
        (("play", "kuhn_poker", "--as", "player3"), 2, "kuhn_poker has no role 'player3'; it has player1, player2"),
        (("play", "kuhn_poker", "--as", "third"), 2, "no role 'third'"),
        (("play", "kuhn_poker", "--as", "1", "--against", "human"), 2, "there is only one terminal"),
        (("match", "kuhn_poker", "random", "random", "-o", "x"), 2, "The folder for results is --results DIR."),
        (("play", "kuhn_poker"), 2, "which role do you play in kuhn_poker? Add `--as player1` or `--as player2`"),
    ],
)
def test_mistakes(
    capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path, arguments: tuple[str, ...], code: int, message: str
) -> None:
    exit_code, out, err = run(capsys, *arguments)
    assert (exit_code, out) == (code, "")
    assert message in err
    assert err.count("\n") == 1  # a paragraph
    assert list(tmp_path.iterdir()) == []  # no folder was created


def test_a_game_at_the_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    type_in(monkeypatch, "jump\n1\n1\n")
    code, out, err = run(capsys, "play", "kuhn_poker", "--as", "first", "--against", "random")
    assert code == 0
    assert "You are player1 in kuhn_poker, with player2." in err
    assert "1. you see (dealt " in err
    assert "noop" not in err
    assert "'jump' is not a legal move" in err
    # The hidden card of the opponent is revealed.
    assert out.count("(deal ") == 2
    assert "player1 (you)" in out
    assert "player2: goal " in out


def test_a_board_help_and_hints(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    type_in(monkeypatch, "?\nhint\n(mark 2 2)\nhistory\nquit\n")
    code, _, err = run(capsys, "play", "tictactoe", "--as", "x", "--against", "random")
    assert code == 0
    assert "hint     shows the move" in err
    assert "it would play (mark " in err
    lines = [line.split() for line in err.splitlines()]
    assert ["2", ".", "x", "."] in lines or ["2", "o", "x", "."] in lines or ["2", ".", "x", "o"] in lines
    assert "1. x: (mark 2 2)" in err
    assert "noop" not in err


@pytest.mark.parametrize("typed", ["quit\n", ""])
def test_leaving_the_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, typed: str) -> None:
    type_in(monkeypatch, typed)
    code, out, _ = run(capsys, "play", "monty_hall", "--as", "candidate", "--json")
    result = json.loads(out)
    assert (code, result["interrupted"], result["goals"], result["moves"]) == (0, True, None, [])
    type_in(monkeypatch, f"1\n1\n{typed}")
    code, out, err = run(capsys, "match", "monty_hall", "human", "--games", "9")
    assert code == 0
    assert "no game has ended" in out or "candidate" in out
    assert "resume with: gdlx match --resume results/monty_hall/match-human" in err


def test_ctrl_c_at_the_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("rich.console.Console.input", interrupted)
    code, out, _ = run(capsys, "play", "kuhn_poker", "--as", "player1")
    assert code == 130
    assert "The game has not ended." in out


def test_ctrl_c_keeps_the_games_that_have_ended(tmp_path: pathlib.Path) -> None:
    """Interrupt a process that plays a million games, one at a time."""
    script = (
        "from gdlx.players.matches import match; match._LANES = (32,); match.Match.is_vectorised = False; "
        "from gdlx.players.matches import contest; contest._SAVE_INTERVAL = 0.1; from gdlx import cli; import sys; "
        "sys.exit(cli.main(['match', 'kuhn_poker', 'random', 'random', '--games', '1000000']))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    folder = tmp_path / "results" / "kuhn_poker" / "match-random-vs-random"
    while not (folder / "games.csv").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode == 130, err
    assert "remark: interrupted; resume with: gdlx match --resume results/kuhn_poker/match-random-vs-random" in err
    assert "Traceback" not in err
    result = json.loads((folder / "result.json").read_text())
    assert result["games"] > 0
    assert len((folder / "games.csv").read_text().splitlines()) == result["games"] + 1
    assert f"{result['games']:,} games" in out


def test_help_names_the_agents_and_starts_without_jax() -> None:
    assert all(name in match_runs.NAMES for name in entries.ENTRIES)
    script = "import sys, gdlx.cli; sys.exit(any(name in sys.modules for name in ('jax', 'numpy', 'rich.table')))"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
    ran = subprocess.run([*GDLX, "match", "--help"], capture_output=True, text=True, check=True)
    assert "mccfr" in ran.stdout
