"""The training loop, its checkpoints, the command `train`, and networks as agents."""

import json
import pathlib
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gdlx
from gdlx import cli
from gdlx.cli import train as cli_training
from gdlx.envs import game_facts, game_spec
from gdlx.nets import checkpoints, training, vectorised_play
from gdlx.nets.learners import learner_registry, protocol, self_play, supervised
from gdlx.nets.models import networks
from gdlx.nets.values import depth_limited, infoset_tables
from gdlx.players.agents import agent_registry, network_agent
from gdlx.players.matches import match
from gdlx.players.matches import match as matches
from gdlx.propnet.circuits import propnet
from gdlx.propnet.common import errors
from gdlx.solvers import infoset_values, tasks
from gdlx.solvers.runs import driver
from gdlx.tests.helpers import explicit, players, samples

_SET = ("games=16", "steps=4", "capacity=256", "batch=32", "updates=1", "widths=8,8")
_TRAIN = ("train", "kuhn_poker", *(part for each in _SET for part in ("--set", each)))


def train_config() -> learner_registry.TrainConfig:
    settings = learner_registry.make_settings("self-play", dict(text.split("=") for text in _SET))
    return learner_registry.TrainConfig(players.load_arena("kuhn_poker").game, "self-play", 5, settings)


@pytest.fixture(autouse=True, scope="module")
def _one_learner_of_a_kind() -> Iterator[None]:
    """Commands that train with the same settings share the learner, and so its programs, within this file."""
    make, made = learner_registry.make_learner, dict[Hashable, protocol.Learner]()

    def shared(config: learner_registry.TrainConfig, propnet: propnet.PropNet, task: tasks.TreeTask | None) -> Any:
        if learner_registry.ENTRIES[config.learner].needs_tree:
            return make(config, propnet, task)
        key = config, game_facts.probe(propnet).digest
        if key not in made:
            made[key] = make(config, propnet, task)
        return made[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(learner_registry, "make_learner", shared)
        yield


@pytest.fixture(scope="module")
def learner() -> protocol.Learner:
    return learner_registry.make_learner(train_config(), players.load_arena("kuhn_poker").env.propnet, None)


def trained(learner: protocol.Learner, folder: pathlib.Path | None, iterations: int, *, resume: bool = False) -> Any:
    digest = game_facts.probe(players.load_arena("kuhn_poker").env.propnet).digest
    run = training.TrainingRun(train_config(), learner, digest, folder, resume=resume)
    for _ in run.points(driver.StopCondition(iterations)):
        pass
    run.finish()
    return run


@pytest.fixture(scope="module")
def folder(learner: protocol.Learner, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    made = tmp_path_factory.mktemp("trained")
    trained(learner, made, 3)
    return made


def restored(folder: pathlib.Path) -> checkpoints.RestoredTraining:
    return checkpoints.restore_training(folder, players.load_arena("kuhn_poker").env.propnet, None)


def test_networks_are_judged_like_any_policy(folder: pathlib.Path) -> None:
    """As their tabulated policy is, in double precision; and not in other games."""
    state = restored(folder)
    policies = infoset_tables.network_policies(
        state.learner, state.learner.policy_params(state.state), samples.load_tree("kuhn_poker")
    )
    judged = gdlx.evaluate("kuhn_poker", folder)
    assert judged.improvements == pytest.approx(gdlx.evaluate("kuhn_poker", policies).improvements, abs=1e-6)
    assert judged.improvements == pytest.approx(
        tasks.make_tree_task("kuhn_poker").metrics(policies).improvements, abs=1e-5
    )
    assert [len(sets) for sets in judged.missing] == [0, 0]
    bounded = gdlx.evaluate("kuhn_poker", folder, max_nodes=1, bound_seconds=0.5)
    assert bounded.bound_result is not None
    bound = bounded.bound_result.bound
    assert bound.exploitability is not None
    assert judged.exploitability is not None
    assert 0 < bound.exploitability < judged.exploitability + 4 * bound.standard_error
    with pytest.raises(checkpoints.CheckpointError, match="was trained for kuhn_poker, with other rules than rps"):
        gdlx.evaluate("rps", folder)
    with pytest.raises(errors.UserError, match="need the rules of spiel:kuhn_poker"):
        gdlx.evaluate("spiel:kuhn_poker", folder)


def improvements(folder: pathlib.Path) -> dict[str, float]:
    """Best-response improvements against networks for kuhn_poker, by trying all pure policies."""
    tree, root = explicit.load_game("kuhn_poker")
    saved = restored(folder)
    policy = explicit.from_arrays(
        tree, infoset_tables.network_policies(saved.learner, saved.learner.policy_params(saved.state), tree)
    )
    value = explicit.expected(root, policy)
    return {
        player.name: max(
            explicit.expected(root, policy | pure)[number] for pure in explicit.pure_policies(root, number)
        )
        - value[number]
        for number, player in enumerate(tree.players)
    }


def prediction_error(folder: pathlib.Path) -> float:
    """Error of predicted values of information sets, as a fraction of kuhn_poker's payoff range of 4."""
    learner, state, *_ = restored(folder)
    assert isinstance(learner, self_play.SelfPlay)
    tree, parameters = samples.load_tree("kuhn_poker"), learner.policy_params(state)
    policies = infoset_tables.network_policies(learner, parameters, tree)
    square, mass = 0.0, 0.0
    for number, player in enumerate(tree.players):
        reach, exact, _ = infoset_values.infoset_values(tree, policies, number)
        for decision, seen in enumerate(learner.encoder.encode_infosets(tree, number)):
            predicted = networks.apply_network(learner.network, parameters, seen[None]).value[0, number] * learner.scale
            square += reach[decision] * (float(predicted) - exact[decision]) ** 2
            mass += reach[decision]
        assert len(exact) == player.sets
    return float(np.sqrt(square / mass)) / 4


def test_resumed_training_is_the_same_as_one_that_never_stopped(
    learner: protocol.Learner, tmp_path: pathlib.Path
) -> None:
    whole = trained(learner, None, 5)
    trained(learner, tmp_path, 2)
    samples.assert_same_leaves(whole.state, trained(learner, tmp_path, 5, resume=True).state)
    rows = checkpoints.read_metrics(tmp_path)
    assert [row["iteration"] for row in rows] == sorted({row["iteration"] for row in rows})
    assert rows[-1]["iteration"] == 5


def test_the_last_two_states_are_kept(learner: protocol.Learner, tmp_path: pathlib.Path) -> None:
    state = learner.init(jax.random.key(0))
    for iteration in (1, 2, 10):
        checkpoints.write_state(tmp_path, iteration, 0.5 * iteration, state)
    names = sorted(path.name for path in (tmp_path / checkpoints.STATES).iterdir())
    assert names == ["10", "10.json", "2", "2.json"]  # states, and the digests of their files
    actual, iteration, seconds = checkpoints.read_state(tmp_path, state)
    assert (iteration, seconds) == (10, 5.0)
    samples.assert_same_leaves(state, actual)


def test_a_damaged_or_foreign_state_is_refused(learner: protocol.Learner, tmp_path: pathlib.Path) -> None:
    state = learner.init(jax.random.key(0))
    with pytest.raises(checkpoints.CheckpointError, match="no networks yet"):
        checkpoints.read_state(tmp_path, state)
    checkpoints.write_state(tmp_path, 1, 0.0, state)
    _empty_files(tmp_path, 1)
    with pytest.raises(checkpoints.CheckpointError, match=r"damaged.*there is no other; train again") as raised:
        checkpoints.read_state(tmp_path, state)
    assert "\n" not in str(raised.value)
    checkpoints.write_state(tmp_path, 1, 0.0, {"other": jnp.zeros(3)})
    with pytest.raises(checkpoints.CheckpointError, match="other shapes"):
        checkpoints.read_state(tmp_path, state)
    checkpoints.write_state(tmp_path, 2, 0.0, state)
    _empty_files(tmp_path, 2)
    with pytest.raises(checkpoints.CheckpointError, match=r"damaged.*resume from the previous one"):
        checkpoints.read_state(tmp_path, state)


def _empty_files(folder: pathlib.Path, iteration: int) -> None:
    for path in (folder / checkpoints.STATES / str(iteration)).rglob("*"):
        if path.is_file():
            path.write_bytes(b"")


def test_too_little_memory_for_an_iteration(learner: protocol.Learner, tmp_path: pathlib.Path) -> None:
    run = training.TrainingRun(train_config(), _NeedsMuch(learner), "digest", tmp_path)
    with pytest.raises(training.TrainingError, match="set games or draws or capacity or batch smaller"):
        for _ in run.points(driver.StopCondition(10)):
            pass
    assert checkpoints.read_state(tmp_path, learner.init(jax.random.key(0)))[1] == 1


class _RunsAway:
    """Good for two iterations."""

    def __init__(self, inner: protocol.Learner) -> None:
        self.encoder, self.network, self.init, self.policy_params = (
            inner.encoder,
            inner.network,
            inner.init,
            inner.policy_params,
        )
        self.settings = inner.settings
        self._inner, self._count = inner, 0

    def iterate(self, state: Any) -> tuple[Any, Mapping[str, jax.Array]]:
        self._count += 1
        state, reported = self._inner.iterate(state)
        return state, reported if self._count < 3 else dict(reported) | {"loss": jnp.asarray(jnp.nan)}


class _NeedsMuch(_RunsAway):
    """More than there is, from the second iteration on: a petabyte."""

    def iterate(self, state: Any) -> tuple[Any, Mapping[str, jax.Array]]:
        self._count += 1
        if self._count > 1:
            jax.block_until_ready(jnp.zeros(2**48, jnp.float32))  # type: ignore[no-untyped-call]
        return self._inner.iterate(state)


def test_a_loss_that_is_not_finite_stops_and_saves_the_last_good_state(
    learner: protocol.Learner, tmp_path: pathlib.Path
) -> None:
    run = training.TrainingRun(train_config(), _RunsAway(learner), "digest", tmp_path, interval=0.0)
    with pytest.raises(training.TrainingError, match=r"the loss is not a finite .*of iteration [12] are saved"):
        for _ in run.points(driver.StopCondition(10)):
            pass
    _, iteration, _ = checkpoints.read_state(tmp_path, learner.init(jax.random.key(0)))
    assert iteration == run.iteration <= 2
    training.TrainingRun(train_config(), learner, "digest", tmp_path, resume=True).finish()  # it is not locked


def test_a_replay_buffer_that_cannot_fit_is_refused_before_it_is_allocated() -> None:
    settings = learner_registry.make_settings("self-play", {"capacity": str(2**36)})
    huge = learner_registry.TrainConfig(players.load_arena("kuhn_poker").game, "self-play", 5, settings)
    with pytest.raises(training.TrainingError, match="make the capacity smaller"):
        training.require_memory(learner_registry.make_learner(huge, players.load_arena("kuhn_poker").env.propnet, None))


def test_a_resumed_training_has_the_rows_of_one_that_was_never_stopped(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def rows(name: str, *stops: int) -> list[dict[str, float]]:
        folder = tmp_path / name / "kuhn_poker" / "network-self-play"
        for stop in stops:
            begin = (
                ("train", "--resume", str(folder)) if folder.exists() else (*_TRAIN, "--results", str(tmp_path / name))
            )
            assert cli.main([*begin, "--iterations", str(stop), "--json"]) == 0
        capsys.readouterr()
        return [{**row, "seconds": 0} for row in checkpoints.read_metrics(folder)]

    whole = rows("whole", 13)
    assert [row["iteration"] for row in whole] == [*range(1, 12), 13]
    assert [row["iteration"] for row in whole if "improvement_player1" in row] == [10, 13]
    assert rows("resumed", 4, 12, 13) == whole


def test_metrics_are_written_before_the_state(
    learner: protocol.Learner, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(checkpoints, "write_state", full)
    with pytest.raises(OSError, match="no space"):
        trained(learner, tmp_path, 2)
    assert [row["iteration"] for row in checkpoints.read_metrics(tmp_path)] == [1, 2]


def test_learners_and_runs_print_in_one_line(learner: protocol.Learner, tmp_path: pathlib.Path) -> None:
    shown = "SelfPlay(game='kuhn_poker', games=16, depth=1, widths=(8, 8), kind='residual')"
    assert repr(learner) == shown
    run = trained(learner, tmp_path, 1)
    assert repr(run) == f"TrainingRun({shown}, iteration=1, seconds={run.seconds:.1f}, folder={str(tmp_path)!r})"
    encoder = repr(learner.encoder)
    assert encoder == f"Encoder(game='kuhn_poker', steps=5, width={learner.encoder.width})"


def test_networks_play_the_same_in_lockstep_and_one_by_one(folder: pathlib.Path) -> None:
    arena = players.load_arena("kuhn_poker")
    actual = agent_registry.make_agent(f"network:{folder}")
    assert isinstance(actual, network_agent.NetworkAgent)
    policy = actual.policy(arena)
    asked = players.FunctionAgent(lambda view, clock: view.legal[0])
    playing_match = matches.Match(arena, (asked, asked), match.MatchSettings(games=4))
    for _ in matches.play_games(playing_match):
        pass
    assert {view.player for view in asked.views} == {0, 1}
    for view in asked.views:
        window, key = network_agent._rows(policy.encoder, view)
        one = jax.tree.map(lambda x: x[None], window)
        reported = vectorised_play.network_policy(policy.encoder, policy.network)(
            policy.parameters,
            vectorised_play.Observation(one, jnp.asarray(key)[None], window.legal[view.player][None], view.player),
        )[0]
        np.testing.assert_allclose(
            network_agent.legal_action_probabilities(policy, view), np.asarray(reported)[list(view.legal)], atol=1e-5
        )


def test_networks_meet_others_in_lockstep(folder: pathlib.Path) -> None:
    arena = players.load_arena("kuhn_poker")
    one = matches.Match(
        arena,
        (agent_registry.make_agent(f"network:{folder}"), agent_registry.make_agent("random")),
        match.MatchSettings(games=40),
    )
    assert one.is_vectorised
    games = [batch.games for batch in matches.play_games(one)]
    assert sum(len(part.number) for part in games) == 40
    assert all((part.payoff.sum(axis=1) == 0).all() for part in games)


def test_networks_of_another_game_are_refused(folder: pathlib.Path) -> None:
    with pytest.raises(checkpoints.CheckpointError, match="was trained for kuhn_poker"):
        network_agent.load_policy(folder, players.load_arena("goofspiel:cards=3"))


def test_train_from_the_command_line(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*_TRAIN, "--iterations", "2", "--results", str(tmp_path), "--json"]) == 0
    output = json.loads(capsys.readouterr().out)
    assert output["iterations"] == 2
    assert output["improvements"] == pytest.approx(improvements(pathlib.Path(output["result"])), abs=1e-5)
    assert output["nash_conv"] == pytest.approx(sum(output["improvements"].values()))
    assert output["exploitability"] == pytest.approx(output["nash_conv"] / 2)
    assert set(output["against_random"]) == {"player1", "player2"}
    assert output["parameters"] > 100
    assert output["metrics"]["loss"] > 0
    assert output["metrics"]["improvement_player1"] == output["improvements"]["player1"]
    made = pathlib.Path(output["result"])
    assert cli.main(["train", "--resume", str(made), "--iterations", "3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["iterations"] == 3
    assert cli.main(["train", "--resume", str(made), "--iterations", "3"]) == 0
    assert "nothing was trained" in capsys.readouterr().err
    assert cli.main(["train", "--resume", str(made), "--set", "games=8"]) == 2
    assert "leave out --set with" in " ".join(capsys.readouterr().err.split())
    config = json.loads((made / "config.json").read_text())
    config["settings"]["widths"] = [4]
    (made / "config.json").write_text(json.dumps(config))
    assert cli.main(["train", "--resume", str(made), "--iterations", "4"]) == 1
    assert "other shapes" in capsys.readouterr().err
    for name, value, words in (
        ("games", 16.5, "games of self-play takes a whole number, not '16.5'"),
        ("kind", "magic", "takes mlp or residual"),
        ("widths", [0], "widths are one or more sizes"),
    ):
        (made / "config.json").write_text(json.dumps(config | {"settings": config["settings"] | {name: value}}))
        assert cli.main(["evaluate", str(made)]) == 1
        output = " ".join(capsys.readouterr().err.split())
        assert words in output
        assert "config.json" in output.replace(" ", "")
    (made / "config.json").write_text(json.dumps(config | {"seed": 0}).replace('"seed": 0', '"seed": 1e400'))
    assert cli.main(["evaluate", str(made)]) == 1


def test_a_second_interrupt_loses_nothing(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """While the strength of the networks is measured."""

    def impatient(*arguments: Any, **options: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli_training, "measured", impatient)
    assert cli.main([*_TRAIN, "--iterations", "2", "--results", str(tmp_path), "--json"]) == 130
    capsys.readouterr()
    monkeypatch.undo()
    (made,) = (tmp_path / "kuhn_poker").iterdir()
    (made / "metrics.csv").write_text("seconds,loss\n1,2\n")
    assert cli.main(["train", "--resume", str(made), "--iterations", "3"]) == 1
    assert "metrics.csv cannot be read: a row has no iteration" in " ".join(capsys.readouterr().err.split())
    (made / "metrics.csv").unlink()
    assert cli.main(["train", "--resume", str(made), "--iterations", "3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["iterations"] == 3


def test_depth_limited_solving_from_the_command_line(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], folder: pathlib.Path
) -> None:
    few = [part for each in ("depth=3", "batch=16", "solving=100", "steps=50") for part in ("--set", each)]
    train = ["train", "kuhn_poker", "--learner", "supervised", *few, "--iterations", "2", "--results", str(tmp_path)]
    assert cli.main([*train, "--json"]) == 0
    output = json.loads(capsys.readouterr().out)
    assert output["against_random"]["player1"]["goal"] == pytest.approx(50, abs=2)
    assert cli.main(["evaluate", output["result"], "--json"]) == 0
    assert 0 < json.loads(capsys.readouterr().out)["value_error"] < 0.5
    solve = ["solve", "kuhn_poker", "--algorithm", "depth-limited", "--results", str(tmp_path), "--json"]
    assert cli.main([*solve, "--net", output["result"], "--iterations", "100"]) == 0
    printed = json.loads(capsys.readouterr().out)
    tree = game_spec.unroll_game(game_spec.GameSpec("kuhn_poker"), keep_edges=True)
    task = tasks.make_tree_task(game_spec.GameSpec("kuhn_poker"), tree)
    rules = players.load_arena("kuhn_poker").env.propnet
    learner, state, *_ = checkpoints.restore_training(pathlib.Path(output["result"]), rules, task)
    assert isinstance(learner, supervised.Supervised)
    values = depth_limited.network_values(learner, learner.values(state))
    direct = task.metrics(depth_limited.solve(task, 3, values, iterations=100))
    assert printed["exploitability"] == pytest.approx(direct.exploitability, rel=1e-4)
    assert (
        0 < printed["exploitability"] < 0.2
    )  # uniform play has 0.458; test_supervised bounds what good networks reach
    assert cli.main(["evaluate", printed["result"], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["exploitability"] == pytest.approx(printed["exploitability"], rel=1e-4)
    for arguments, words in (
        (["solve", "--resume", printed["result"]], "nothing to resume"),
        (solve, "needs a network"),
        ([*solve, "--network", str(folder)], "has no value network for ranges"),
        (["solve", "leduc_poker", *solve[2:], "--network", output["result"]], "was trained for kuhn_poker"),
        (["solve", "kuhn_poker", "--network", output["result"]], "--network is an option of depth-limited"),
        ([*solve, "--network", output["result"], "--target", "0.1"], "leave out --target"),
        ([*solve, "--network", output["result"], "--payoff", "goal"], "was trained with --payoff auto"),
    ):
        assert cli.main(arguments) != 0
        assert words in " ".join(capsys.readouterr().err.split()), arguments


def test_evaluate_reports_the_strength_of_networks(folder: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["evaluate", str(folder), "--json"]) == 0
    output = json.loads(capsys.readouterr().out)
    assert output["improvements"] == pytest.approx(improvements(folder), abs=1e-5)
    assert output["exploitability"] == pytest.approx(sum(output["improvements"].values()) / 2)
    assert output["predicted"]["error"] == pytest.approx(prediction_error(folder), rel=1e-4)
    assert -1 <= output["predicted"]["correlation"] <= 1
    for option in ("--bound", "--all"):
        assert cli.main(["evaluate", str(folder), option]) == 2
        assert f"leave out {option}. " in capsys.readouterr().err


def test_depth_limited_search_takes_the_values_of_a_network(folder: pathlib.Path) -> None:
    arena = players.load_arena("kuhn_poker")
    values = network_agent.load_value_function(str(folder), arena)
    learner, state, *_ = checkpoints.restore_training(folder, arena.env.propnet)
    assert isinstance(learner, self_play.SelfPlay)
    start = arena.env.init()
    after = jax.jit(arena.env.step)(start, jnp.argmax(start.legal_mask, axis=1), jax.random.key(0))
    reported = values(np.stack([start.registers, after.registers], axis=1), np.array([0, 1], np.int32))
    for number, game in enumerate((start, after)):
        exact = learner.values(state, learner.encoder.state(game)[None])[0]
        np.testing.assert_allclose(reported[:, number], exact, rtol=1e-4, atol=1e-4)
    searches = agent_registry.make_agent(f"cfr:network={folder},iterations=5,depth=1")
    one = matches.Match(arena, (searches, agent_registry.make_agent("random")), match.MatchSettings(games=2))
    played = list(matches.play_games(one))
    assert not any(batch.incidents for batch in played)
    with pytest.raises(checkpoints.CheckpointError, match="was trained for kuhn_poker"):
        network_agent.load_value_function(str(folder), players.load_arena("goofspiel:cards=3"))
