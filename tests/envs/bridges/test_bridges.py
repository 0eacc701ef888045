"""Games in other libraries' clothes: OpenSpiel's own checks and solvers run on them, and pgx's games play the same."""

import collections
import functools
import itertools
import pathlib
import pickle
import subprocess
import sys
import typing
from typing import Any
from xml.etree import ElementTree

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gdlx
from gdlx.envs import dynamics, host, payoffs
from gdlx.envs import env as envs
from gdlx.envs.bridges import open_spiel_game, pgx_env
from gdlx.propnet import games, library
from gdlx.propnet.common import errors
from gdlx.tests.helpers import matches, sheets

pyspiel = pytest.importorskip("pyspiel")

SIMULTANEOUS = {
    "biased_rps",
    "blind_tictactoe",
    "goofspiel",
    "gops",
    "krieg_tictactoe",
    "modified_rps",
    "oshi_zumo",
    "repeated_rps",
    "rps",
    "rps_plus",
    "simultaneous_breakthrough",
    "simultaneous_tictactoe",
    "smallest",
    "three_card_poker",
}
SLOW = pytest.mark.slow


@pytest.mark.parametrize("game", library.names())
def test_which_games_are_turn_taking(game: str) -> None:
    assert dynamics.infer_dynamics(games.compile_game(game)).turn_taking == (game not in SIMULTANEOUS)


def test_turn_taking_is_proved_where_it_can_be() -> None:
    assert dynamics.infer_dynamics(games.compile_game("tictactoe")) == dynamics.Dynamics(True, True)
    assert dynamics.infer_dynamics(sheets.compile_text(sheets.COINS)) == dynamics.Dynamics(False, True)
    assert dynamics.infer_dynamics(sheets.compile_text(sheets.ENDLESS)) == dynamics.Dynamics(True, True)  # one player


# ---- OpenSpiel


def written(folder: pathlib.Path, text: str, name: str = "sheet.gdl") -> str:
    (folder / name).write_text(text)
    return str(folder / name)


@pytest.mark.parametrize(
    "game",
    [
        "kuhn_poker",
        "leduc_poker",
        "monty_hall",
        "blind_tictactoe",
        "goofspiel:cards=3",
        "smallest:players=3,numbers=3",
        *(pytest.param(game, marks=SLOW) for game in library.names()),
    ],
)
def test_open_spiels_own_checks(game: str) -> None:
    pyspiel.random_sim_test(open_spiel_game.load_game(game), num_sims=3, serialize=True, verbose=False)


def test_the_type_of_a_game() -> None:
    kinds = pyspiel.GameType
    kuhn, goofspiel, hall = (open_spiel_game.load_game(g) for g in ("kuhn_poker", "goofspiel:cards=3", "monty_hall"))
    assert str(kuhn) == "gdlx_kuhn_poker()"
    assert str(pyspiel.load_game("gdlx_kuhn_poker")) == str(kuhn)
    assert kuhn.get_type().dynamics == kinds.Dynamics.SEQUENTIAL
    assert kuhn.get_type().chance_mode == kinds.ChanceMode.EXPLICIT_STOCHASTIC
    assert kuhn.get_type().information == kinds.Information.IMPERFECT_INFORMATION
    assert kuhn.get_type().utility == kinds.Utility.ZERO_SUM
    assert (kuhn.min_utility(), kuhn.max_utility(), kuhn.num_players()) == (-2.0, 2.0, 2)
    assert goofspiel.get_type().dynamics == kinds.Dynamics.SIMULTANEOUS
    assert goofspiel.get_type().chance_mode == kinds.ChanceMode.DETERMINISTIC
    assert hall.get_type().utility == kinds.Utility.GENERAL_SUM
    assert hall.num_players() == 1
    assert open_spiel_game.load_game("tictactoe").get_type().information == kinds.Information.PERFECT_INFORMATION


def test_open_spiel_solves_kuhn_poker() -> None:
    """Kuhn (1950): the first player loses 1/18 of an ante."""
    from open_spiel.python.algorithms import cfr, expected_game_score, exploitability

    game = open_spiel_game.load_game("kuhn_poker")
    solver = cfr.CFRPlusSolver(game)
    for _ in range(100):
        solver.evaluate_and_update_policy()
    policy = solver.average_policy()
    assert exploitability.exploitability(game, policy) < 3e-3
    value = expected_game_score.policy_value(game.new_initial_state(), [policy] * 2)
    assert value[0] == pytest.approx(-1 / 18, abs=1e-3)


TWINS = [
    ("kuhn_poker", "kuhn_poker", 1.0),
    ("goofspiel:cards=3", "goofspiel(num_cards=3,imp_info=True,points_order=ascending)", 50.0),
    ("liars_dice:sides=2", "liars_dice(dice_sides=2)", 50.0),
    pytest.param("leduc_poker", "leduc_poker", 1.0, marks=SLOW),
    pytest.param("liars_dice:sides=4", "liars_dice(dice_sides=4)", 50.0, marks=SLOW),
    pytest.param("goofspiel:cards=4", "goofspiel(num_cards=4,imp_info=True,points_order=ascending)", 50.0, marks=SLOW),
]


@pytest.mark.parametrize(("ours", "theirs", "unit"), TWINS)
def test_as_many_information_sets_as_open_spiels_game(ours: str, theirs: str, unit: float) -> None:
    """The same number of sets with a choice, of each number of moves, and the same exploitability of uniform play."""
    from open_spiel.python import policy
    from open_spiel.python.algorithms import exploitability

    games = [open_spiel_game.load_game(ours), pyspiel.load_game(theirs)]
    if games[0].get_type().dynamics == pyspiel.GameType.Dynamics.SIMULTANEOUS:
        games = [pyspiel.convert_to_turn_based(game) for game in games]
    assert information_sets(games[0]) == information_sets(games[1])
    ours_lost, theirs_lost = (exploitability.exploitability(game, policy.UniformRandomPolicy(game)) for game in games)
    assert ours_lost / unit == pytest.approx(theirs_lost)


@pytest.mark.parametrize("game", ["kuhn_poker", "goofspiel:cards=3", pytest.param("leduc_poker", marks=SLOW)])
def test_tensors_of_information_states(game: str) -> None:
    """They tell apart what strings tell apart, wherever a player decides."""
    loaded = open_spiel_game.load_game(game)
    strings: dict[str, bytes] = {}
    work = [loaded.new_initial_state()]
    while work:
        state = work.pop()
        if state.is_terminal():
            continue
        for player in range(loaded.num_players()):
            tensor = np.array(state.information_state_tensor(player), np.bool_).tobytes()
            assert strings.setdefault(state.information_state_string(player), tensor) == tensor
        if state.is_simultaneous_node():
            for joint in itertools.product(*map(state.legal_actions, range(loaded.num_players()))):
                work.append(state.clone())
                work[-1].apply_actions(list(joint))
        else:
            work += map(state.child, state.legal_actions())
    assert len(set(strings.values())) == len(strings) > 10


def information_sets(game: Any) -> list[collections.Counter[int]]:
    """For each player, how many information sets with a choice have so many moves."""
    sets: list[dict[str, int]] = [{} for _ in range(game.num_players())]
    work = [game.new_initial_state()]
    while work:
        state = work.pop()
        if state.is_terminal():
            continue
        if not state.is_chance_node() and len(state.legal_actions()) > 1:
            player = state.current_player()
            name = state.information_state_string(player)
            assert sets[player].setdefault(name, len(state.legal_actions())) == len(state.legal_actions())
        work += [state.child(action) for action in state.legal_actions()]
    return [collections.Counter(own.values()) for own in sets]


def test_published_numbers_of_information_sets() -> None:
    assert information_sets(open_spiel_game.load_game("kuhn_poker")) == [{2: 6}, {2: 6}]
    assert [sum(own.values()) for own in information_sets(open_spiel_game.load_game("leduc_poker"))] == [468, 468]


@pytest.mark.slow
def test_the_whole_of_liars_dice() -> None:
    """OpenSpiel counts 24 576 information states; in half of them the only move is to doubt the highest bid."""
    ours, theirs = (
        information_sets(open_spiel_game.load_game("liars_dice")),
        information_sets(pyspiel.load_game("liars_dice")),
    )
    assert ours == theirs
    assert [sum(own.values()) for own in ours] == [6_144, 6_144]


@pytest.mark.parametrize("game", ["kuhn_poker", "coins", "maze"])
def test_views_are_equal_where_keys_are(game: str) -> None:
    """Along the same matches, the text of an information state and the key of `Env` tell the same histories apart."""
    texts = {"coins": sheets.COINS, "maze": sheets.MAZE}
    env = sheets.make_env(texts[game]) if game in texts else gdlx.make(game)
    nodes = host.HostEnv(env.propnet, env.payoffs, 100)
    played = matches.play_random(env, matches=100, steps=8)
    key_of: list[dict[str, tuple[int, ...]]] = [{} for _ in env.players]
    for match in range(100):
        states = played.states_of(match)
        node = nodes.start
        while True:
            state = states[node.step]
            for player, keys in enumerate(key_of):
                key = tuple(state.info_key[player].tolist())
                assert keys.setdefault(node.views[player], key) == key
            assert node.is_over == bool(state.terminated)
            if node.is_over:
                assert nodes.returns(node) == state.rewards.tolist()
                break
            assert [len(own) for own in node.position.legal] == state.legal_mask.sum(axis=1).tolist()
            if node.deciders:
                node = nodes.apply_actions(node, tuple(states[node.step + 1].actions.tolist()))
            else:
                node = nodes.apply_chance(node, int(played.chance[node.step, match]))
    for keys in key_of:
        assert len(set(keys.values())) == len(keys) > 5


def test_a_match_of_kuhn_poker() -> None:
    state = open_spiel_game.load_game("kuhn_poker").new_initial_state()
    assert state.is_chance_node()
    assert state.chance_outcomes() == [(0, 1 / 3), (1, 1 / 3), (2, 1 / 3)]
    assert [state.action_to_string(a) for a in state.legal_actions()] == ["(deal jack)", "(deal king)", "(deal queen)"]
    state.apply_action(1)
    state.apply_action(0)
    assert state.current_player() == 0
    assert [state.action_to_string(a) for a in state.legal_actions()] == ["bet", "check"]
    state.apply_action(state.legal_actions()[0])
    assert state.current_player() == 1
    assert state.information_state_string(1).splitlines() == [
        "player2",
        "may noop",
        "did noop;; saw ;; may noop",
        "did noop;; saw (dealt jack);; may noop",
        "did noop;; saw (opponent_did bet);; may call; fold",
    ]
    assert state.observation_string(1) == "did noop;; saw (opponent_did bet);; may call; fold"
    assert sum(state.observation_tensor(1)) == 5  # who, own move, one percept, two legal moves
    assert sum(state.information_state_tensor(1)) == 1 + 3 + 2 + 2  # who, moves, percepts, legal moves
    other = state.clone()
    state.apply_action(state.string_to_action("call"))
    assert state.is_terminal()
    assert state.returns() == [2.0, -2.0]
    assert other.legal_actions()
    assert "(holds player1 king)" in str(other)
    with pytest.raises(ValueError, match="action 77 of player2 is not legal"):
        other.apply_action(77)


def test_a_node_of_both_players_and_chance(tmp_path: pathlib.Path) -> None:
    """Players decide first, together; then chance. Neither is seen before both have been."""
    game = open_spiel_game.load_game(written(tmp_path, sheets.COINS))
    state = game.new_initial_state()
    assert state.is_simultaneous_node()
    assert [state.legal_actions(player) for player in (0, 1)] == [[0, 1], [0, 1]]
    before = [state.information_state_string(player) for player in (0, 1)]
    state.apply_actions([0, 1])
    assert state.is_chance_node()
    assert len(state.chance_outcomes()) == 3
    assert [state.information_state_string(player) for player in (0, 1)] == before
    state.apply_action(0)
    assert state.is_simultaneous_node()
    _, copy = pyspiel.deserialize_game_and_state(pyspiel.serialize_game_and_state(game, state))
    assert copy.information_state_string(0) == state.information_state_string(0)
    assert copy.history() == state.history() == [0, 1, 0]


def test_names_of_registered_games(tmp_path: pathlib.Path) -> None:
    assert open_spiel_game.register("rps:n=5") == "gdlx_rps_n_5"
    assert open_spiel_game.register("rps:n=5") == "gdlx_rps_n_5"
    assert open_spiel_game.register("rps:n=5", payoff="goal") == "gdlx_rps_n_5_2"
    first = open_spiel_game.register(written(tmp_path, sheets.COINS))
    second = open_spiel_game.register(written(tmp_path, sheets.ENDLESS))
    assert first != second


def test_matches_without_a_proper_end(tmp_path: pathlib.Path) -> None:
    state = open_spiel_game.load_game(written(tmp_path, sheets.ENDLESS, "endless.gdl"), max_steps=2).new_initial_state()
    while not state.is_terminal():
        state.apply_action(0)
    assert (state.returns(), state.node.step) == ([0.0], 2)
    state = open_spiel_game.load_game(
        written(tmp_path, sheets.DEAD_END, "dead_end.gdl"), payoff="goal"
    ).new_initial_state()
    state.apply_action(state.string_to_action("(go hole)"))
    assert (state.is_terminal(), state.returns()) == (True, [0.0, 0.0])
    with pytest.raises(ValueError, match="max_steps"):
        open_spiel_game.load_game("rps", max_steps=0)


def test_a_game_that_was_taken_for_turn_taking(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dynamics, "infer_dynamics", lambda propnet, seed: dynamics.Dynamics(True, False))
    state = open_spiel_game.load_game(written(tmp_path, sheets.COINS, "mistaken.gdl")).new_initial_state()
    with pytest.raises(open_spiel_game.NotTurnTakingError, match=r"two players have a choice in: \(round 1\)"):
        state.current_player()


def test_without_open_spiel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_spiel_game, "pyspiel", None)
    with pytest.raises(errors.MissingPackageError, match=r"pip install 'gdlx\[peers\]'") as raised:
        open_spiel_game.load_game("kuhn_poker")
    assert isinstance(raised.value, errors.UserError)


def test_python_ends_well_after_a_game_was_registered() -> None:
    """OpenSpiel holds the registered class until after Python shuts down."""
    use = "from gdlx.envs.bridges import open_spiel_game; print(open_spiel_game.load_game('rps').new_initial_state())"
    ran = subprocess.run([sys.executable, "-c", use], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_nodes_are_pickled_without_the_game() -> None:
    nodes = host.HostEnv(games.compile_game("kuhn_poker"), payoffs.Payoffs(50.0, True, False), 100)
    node = nodes.apply_chance(nodes.start, 1)
    assert pickle.loads(pickle.dumps(node)) == node
    assert len(pickle.dumps(node)) < 2_000
    with pytest.raises(ValueError, match="not legal"):
        nodes.apply_chance(nodes.start, 9)


# ---- pgx


@functools.cache
def bridged(game: str) -> tuple[pgx_env.PgxEnv, "jax.stages.Wrapped", "jax.stages.Wrapped"]:
    env = pgx_env.make_pgx_env(game)
    return env, jax.jit(jax.vmap(env.init)), jax.jit(jax.vmap(env.step))


def keys_of(seed: int, count: int) -> jax.Array:
    return jax.random.split(jax.random.key(seed), count)


def pick(mask: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    actual: np.ndarray = np.argmax(np.where(mask, rng.random(mask.shape), -1), axis=-1).astype(np.int32)
    return actual


@pytest.mark.parametrize(
    ("ours", "theirs", "moves"), [("tictactoe", "tic_tac_toe", 9), ("connect_four", "connect_four", 7)]
)
def test_pgx_plays_the_same(ours: str, theirs: str, moves: int) -> None:
    """Under the same random moves. Both number cells and columns alike; our last action is `noop`."""
    pgx = pytest.importorskip("pgx")
    games = 24
    _, init, step = bridged(ours)
    peer = pgx.make(theirs)
    peer_step = jax.jit(jax.vmap(peer.step))
    state, other = init(keys_of(0, games)), jax.vmap(peer.init)(keys_of(1, games))
    first = np.asarray(other.current_player)  # pgx draws who begins
    rng = np.random.default_rng(0)
    rewards, peer_rewards = np.zeros((games, 2)), np.zeros((games, 2))
    while not (state.terminated.all() and other.terminated.all()):
        over = np.asarray(state.terminated)
        mask = np.asarray(state.legal_action_mask)
        going = ~over & ~np.asarray(other.terminated)
        assert np.array_equal(mask[going, :moves], np.asarray(other.legal_action_mask)[going])
        assert not mask[going, moves].any()
        assert np.array_equal(
            np.asarray(state.current_player)[going], np.asarray(other.current_player)[going] ^ first[going]
        )
        action = pick(mask[:, :moves], rng)
        # We make a forced last move at once, pgx waits for it.
        forced = np.argmax(np.asarray(other.legal_action_mask), axis=1)
        state = step(state, action, keys_of(2, games))
        other = peer_step(other, np.where(over, forced, action))
        rewards += np.asarray(state.rewards)
        peer_rewards += np.asarray(other.rewards)
    by_seat = np.where(first[:, None] == 0, peer_rewards, peer_rewards[:, ::-1])
    assert np.array_equal(rewards, 50 * by_seat)
    assert len(np.unique(rewards[:, 0])) > 1
    assert not state.truncated.any()


def test_every_pgx_step_is_a_decision() -> None:
    games = 40
    env, init, step = bridged("kuhn_poker")
    state = init(keys_of(1, games))
    assert (env.num_players, env.num_actions, env.id, state.env_id) == (2, 5, "kuhn_poker", "kuhn_poker")
    assert env.observation_shape == state.observation.shape[1:]
    assert (state._inner.step == 2).all()  # two cards are dealt
    assert len(np.unique(np.asarray(state._inner.registers), axis=0)) == 6
    rng = np.random.default_rng(0)
    total = np.zeros((games, 2))
    for number in range(3):
        over = np.asarray(state.terminated)
        assert (np.asarray(state.legal_action_mask).sum(axis=1)[~over] == 2).all()
        assert np.asarray(state.legal_action_mask)[over].all()
        assert (np.asarray(state._step_count)[~over] == number).all()
        assert [field.dtype for field in (state.current_player, state.rewards, state.terminated, state.truncated)] == [
            jnp.int32,
            jnp.float32,
            jnp.bool_,
            jnp.bool_,
        ]
        state = step(state, pick(np.asarray(state.legal_action_mask), rng), keys_of(number, games))
        assert not np.asarray(state.rewards)[over].any()
        total += np.asarray(state.rewards)
    assert state.terminated.all()
    assert set(np.abs(total).ravel()) == {1.0, 2.0}
    assert not total.sum(axis=1).any()


def test_pgx_observations_are_those_of_the_current_player() -> None:
    env, init, _ = bridged("kuhn_poker")
    state = init(keys_of(0, 40))
    one = jax.tree.map(lambda x: x[3], state)
    assert np.array_equal(env.observe(one), one.observation)
    mine, other = (np.asarray(env.observe(one, jnp.asarray(player))) for player in (0, 1))
    assert np.array_equal(mine, one.observation)
    assert not np.array_equal(mine, other)
    whole = pgx_env.PgxEnv(env.game, observation="registers")
    assert whole.observation_shape == (len(env.game.propnet.initial),)
    assert np.array_equal(whole.observe(one), one._inner.registers)


def test_an_illegal_action_ends_a_pgx_game() -> None:
    _, init, step = bridged("kuhn_poker")
    state = init(keys_of(0, 40))
    wrong = np.argmin(np.asarray(state.legal_action_mask), axis=1)
    lost = step(state, wrong, keys_of(1, 40))
    assert lost.terminated.all()
    assert lost.legal_action_mask.all()
    assert (np.asarray(lost.rewards) == [-2.0, 2.0]).all()  # as much as the worst loss
    after = step(lost, wrong, keys_of(1, 40))
    assert not after.rewards.any()
    assert np.array_equal(after._step_count, lost._step_count)


@pytest.mark.parametrize("game", ["kuhn_poker", "connect_four", pytest.param("leduc_poker", marks=SLOW)])
def test_pgxs_own_checks(game: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`pgx.api_test`, but with the names of our games, and with a choice along the last axis.

    pgx has a list of the names of its own games, and chooses along axis 1 of masks that have one axis, which numpy
    refuses for its own games too.
    """
    pytest.importorskip("pgx")
    from pgx._src import api_test

    def choose(key: jax.Array, mask: jax.Array) -> jax.Array:
        return jax.random.categorical(key, jnp.log(mask.astype(jnp.float32)), axis=-1)

    monkeypatch.setattr(api_test, "EnvId", typing.Literal["kuhn_poker", "connect_four", "leduc_poker"])
    monkeypatch.setattr(api_test, "act_randomly", jax.jit(choose))
    api_test.api_test(pgx_env.make_pgx_env(game), 3)


def test_pictures_of_pgx_states(tmp_path: pathlib.Path) -> None:
    _, init, step = bridged("tictactoe")
    state = step(init(keys_of(0, 24)), jnp.arange(24) % 9, keys_of(1, 24))
    state.save_svg(tmp_path / "states.svg", scale=2.0)
    texts = [
        element.text for element in ElementTree.parse(tmp_path / "states.svg").iter() if element.tag.endswith("text")
    ]
    assert sum(text == "tictactoe, step 1" for text in texts) == 16  # the first ones
    assert sum("x" in (text or "") and "control" not in (text or "") for text in texts) >= 16
    assert "<svg" in jax.tree.map(lambda x: x[0], state)._repr_html_()
    with pytest.raises(envs.EnvError, match=r"must end with \.svg"):
        state.save_svg("states.png")


def test_pgx_wrappers_take_it() -> None:
    wrappers = pytest.importorskip("pgx.experimental.wrappers")
    env, init, _ = bridged("kuhn_poker")
    step = jax.jit(jax.vmap(wrappers.auto_reset(env.step, env.init)))
    state = init(keys_of(0, 40))
    rng = np.random.default_rng(0)
    ends = 0
    for number in range(12):
        state = step(state, pick(np.asarray(state.legal_action_mask), rng), keys_of(number, 40))
        over = np.asarray(state.terminated)
        assert (np.asarray(state._step_count)[over] == 0).all()
        assert (np.asarray(state.rewards)[over] != 0).all()
        ends += over.sum()
    assert ends > 40 * 12 / 3 * 0.8


FORCED = """
(role only) (legal only wait) (init going)
(<= (next going) (true going)) (<= terminal (not (true going))) (goal only 0)
"""


def test_a_game_without_decisions_is_truncated() -> None:
    env = pgx_env.PgxEnv(sheets.make_env(FORCED), max_skips=5)
    state = jax.jit(env.init)(jax.random.key(0))
    assert (bool(state.truncated), bool(state.terminated), int(state._inner.step)) == (True, False, 5)
    assert state.legal_action_mask.all()
    limited = pgx_env.PgxEnv(sheets.make_env(FORCED, max_steps=3), max_skips=5)
    state = jax.jit(limited.init)(jax.random.key(0))
    assert (bool(state.truncated), bool(state.terminated), int(state._inner.step)) == (True, False, 3)


def test_what_pgxs_interface_cannot_express() -> None:
    with pytest.raises(
        envs.EnvError, match=r"rps is not turn-taking: several players decide at once.*gdlx.make\('rps'\)"
    ):
        pgx_env.make_pgx_env("rps")
    env, init, _ = bridged("kuhn_poker")
    one = jax.tree.map(lambda x: x[0], init(keys_of(0, 40)))
    with pytest.raises(envs.EnvError, match="pass `key=` to step"):
        env.step(one, jnp.asarray(0))
    with pytest.raises(envs.EnvError, match="one integer"):
        env.step(one, jnp.array([0]), jax.random.key(0))
