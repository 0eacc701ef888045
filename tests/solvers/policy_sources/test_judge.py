"""The judge of any policy: against OpenSpiel, and every kind of policy against the others."""

import pathlib
from typing import Any

import numpy as np
import pytest

import gdlx
from gdlx.envs.bridges import open_spiel_game, open_spiel_twins
from gdlx.envs.packed import packed_env
from gdlx.envs.trees import game_tree, unroll
from gdlx.envs.trees.factored import unroll_blocks
from gdlx.propnet import games, library
from gdlx.propnet.common import errors
from gdlx.solvers import evaluate_requests, requests, tabular_policies
from gdlx.solvers.bounds import function_bound, search_bounds
from gdlx.solvers.mccfr import table_policy
from gdlx.solvers.policy_sources import function_policies, policy_source
from gdlx.solvers.runs import policy_tables, result_folder
from gdlx.tests.helpers import explicit, players, samples

KUHN = "kuhn_poker"


def uniform(infosets: function_policies.InformationSets) -> Any:
    return infosets.legal / infosets.legal.sum(axis=1, keepdims=True)


def random_table(game: Any, seed: int) -> Any:
    """A random TabularPolicy of OpenSpiel's Python code."""
    from open_spiel.python import policy

    table = policy.TabularPolicy(game)
    weight = np.random.default_rng(seed).exponential(size=table.action_probability_array.shape)
    weight *= table.legal_actions_mask
    table.action_probability_array[:] = weight / weight.sum(axis=1, keepdims=True)
    return table


def turn_based(game: Any) -> Any:
    """OpenSpiel's exploitability needs turns."""
    pyspiel = pytest.importorskip("pyspiel")
    simultaneous = pyspiel.GameType.Dynamics.SIMULTANEOUS
    return pyspiel.convert_to_turn_based(game) if game.get_type().dynamics == simultaneous else game


# ---- against OpenSpiel

TWINS = [
    (KUHN, 1.0),
    ("liars_dice:sides=3", 50.0),
    ("liars_dice:dice=2,sides=2", 50.0),
    ("goofspiel:cards=3,order=random", 50.0),
    ("leduc_poker", 1.0),
    ("dark_hex:columns=2,rows=2,tries=abrupt", 50.0),
    ("oshi_zumo:coins=4,size=1,min_bid=1,alesia=true", 50.0),
    pytest.param("goofspiel:cards=3,info=perfect", 50.0, marks=pytest.mark.slow),
    pytest.param("goofspiel:cards=4,order=descending", 50.0, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("spec", "unit"), TWINS)
def test_exploitability_is_open_spiels(spec: str, unit: float) -> None:
    """Of a random policy, to nine digits, although OpenSpiel computes it by its own best response."""
    pyspiel = pytest.importorskip("pyspiel")
    from open_spiel.python.algorithms import expected_game_score, exploitability

    twin = open_spiel_twins.find_twin(spec)
    assert twin is not None
    game = turn_based(pyspiel.load_game(twin.name))
    policy = random_table(game, seed=3)
    judged = gdlx.evaluate(spec, policy)
    assert judged.is_exact
    assert [len(sets) for sets in judged.missing] == [0, 0]
    assert judged.exploitability is not None
    assert judged.exploitability / unit == pytest.approx(exploitability.exploitability(game, policy), abs=1e-9)
    value = expected_game_score.policy_value(game.new_initial_state(), [policy] * 2)
    assert judged.value[0] / unit == pytest.approx(value[0], abs=1e-9)
    through_the_tree = gdlx.evaluate(f"spiel:{twin.name}", policy)
    assert through_the_tree.exploitability == pytest.approx(judged.exploitability / unit, abs=1e-9)


def test_every_twin_of_the_library_is_one() -> None:
    pytest.importorskip("pyspiel")
    assert set(open_spiel_twins.names()) < set(library.names())
    for spec in ("phantom_ttt", "phantom_ttt:tries=abrupt", "dark_hex", "leduc_poker"):
        twin = open_spiel_twins.find_twin(spec)
        assert twin is not None
        open_spiel_twins.load(twin.name)
    for spec in ("phantom_ttt:width=4", "leduc_poker:ranks=4", "meier", "no_such_game"):
        assert open_spiel_twins.find_twin(spec) is None


def test_policies_of_cpp_and_of_functions() -> None:
    """A C++ table does not know its game; it may be partial."""
    pyspiel = pytest.importorskip("pyspiel")
    from open_spiel.python import policy

    game = pyspiel.load_game(KUHN)
    table = random_table(game, seed=4)
    whole = gdlx.evaluate(KUHN, table)
    cpp = pyspiel.TabularPolicy(table.to_dict())
    assert gdlx.evaluate(KUHN, cpp).exploitability == pytest.approx(whole.exploitability, abs=1e-12)
    assert gdlx.evaluate(KUHN, pyspiel.UniformPolicy()).exploitability == pytest.approx(11 / 24)
    assert gdlx.evaluate(KUHN, policy.UniformRandomPolicy(game)).exploitability == pytest.approx(11 / 24)
    partial = gdlx.evaluate(KUHN, pyspiel.TabularPolicy({"0": [(0, 0.5), (1, 0.5)]}))
    assert [len(sets) for sets in partial.missing] == [5, 6]
    assert partial.exploitability == pytest.approx(11 / 24)


def test_policies_of_games_through_the_bridge() -> None:
    """Any game of ours that is one of OpenSpiel by `open_spiel_game`, with or without a twin."""
    pytest.importorskip("pyspiel")
    for spec in ("three_card_poker", KUHN):
        game = open_spiel_game.load_game(spec)
        policies = players.random_policies(spec, 5)
        table = policy_tables.to_open_spiel(samples.load_tree(spec), policies, game)
        expected = gdlx.evaluate(spec, policies).improvements
        assert gdlx.evaluate(spec, table).improvements == pytest.approx(expected, abs=1e-12)
        if spec != KUHN:
            policy = in_turns(turn_based(game), table)
            assert gdlx.evaluate(spec, policy).improvements == pytest.approx(expected, abs=1e-12)


def in_turns(game: Any, table: Any) -> Any:
    """A policy of the turn-based version of a game, whose information states begin with who moves."""
    from open_spiel.python import policy

    class InTurns(policy.Policy):  # type: ignore[misc]
        def action_probabilities(self, state: Any, player_id: int | None = None) -> dict[int, float]:
            text = state.information_state_string().partition("\n")[2]
            row = table.action_probability_array[table.state_lookup[text]]
            return {action: row[action] for action in state.legal_actions()}

    return InTurns(game, list(range(game.num_players())))


def test_a_policy_that_knows_more_than_its_player() -> None:
    """Information states of classical dark hex tell how often the other has tried, which our player does not know."""
    pyspiel = pytest.importorskip("pyspiel")
    game = pyspiel.load_game("dark_hex(num_rows=2,num_cols=2)")
    from open_spiel.python import policy

    assert gdlx.evaluate("dark_hex:columns=2,rows=2", policy.UniformRandomPolicy(game)).is_exact
    with pytest.raises(
        policy_source.PolicyError, match="differs between information states that OpenSpiel tells apart"
    ):
        gdlx.evaluate("dark_hex:columns=2,rows=2", random_table(game, seed=1))


@pytest.mark.parametrize(
    ("spec", "theirs", "message"),
    [
        (KUHN, "leduc_poker", r"it is a policy of OpenSpiel's leduc_poker\(\), and kuhn_poker is kuhn_poker\(\)"),
        ("liars_dice:sides=3", "liars_dice(dice_sides=2)", r"OpenSpiel's liars_dice\(dice_sides=2\), and liars_dice:s"),
        ("simple_poker", KUHN, "simple_poker is not known to be one of them: known are dark_hex, goofspiel"),
        ("spiel:leduc_poker", KUHN, r"OpenSpiel's kuhn_poker\(\), and spiel:leduc_poker is leduc_poker\(\)"),
    ],
)
def test_a_policy_of_another_game_of_open_spiel(spec: str, theirs: str, message: str) -> None:
    pyspiel = pytest.importorskip("pyspiel")
    game = pyspiel.load_game(theirs)
    with pytest.raises(errors.UserError, match=message):
        gdlx.evaluate(spec, random_table(game, 0))


def test_different_games_are_noticed_while_walking() -> None:
    pyspiel = pytest.importorskip("pyspiel")
    twin = open_spiel_twins.find_twin("liars_dice:sides=3")
    assert twin is not None
    ours = open_spiel_twins.of_rules(games.compile_game("liars_dice:sides=3"), twin)
    with pytest.raises(open_spiel_twins.TwinError, match="is another game at the history"):
        list(open_spiel_twins.walk(ours, pyspiel.load_game("liars_dice(dice_sides=2)")))
    with pytest.raises(game_tree.TooLargeError, match="more than 10 histories"):
        list(open_spiel_twins.walk(ours, pyspiel.load_game(twin.name), max_histories=10))


# ---- all kinds of policies


def test_all_kinds_agree(tmp_path: pathlib.Path) -> None:
    """The same policy as arrays, a function, a table, files and a solution, and by plain recursion."""
    tree, policies = samples.load_tree(KUHN), players.random_policies(KUHN, 6)
    expected = gdlx.evaluate(KUHN, policies).improvements
    root = explicit.from_propnet(games.compile_game(KUHN))
    chosen = explicit.from_arrays(tree, policies)
    for player, improvement in enumerate(expected):
        best = max(explicit.expected(root, chosen | pure)[player] for pure in explicit.pure_policies(root, player))
        assert best - explicit.expected(root, chosen)[player] == pytest.approx(improvement, abs=1e-12)

    def function(infosets: function_policies.InformationSets) -> Any:
        assert isinstance(infosets, function_policies.TreeInformationSets)
        table = np.zeros(infosets.legal.shape)
        player = tree.players[infosets.player]
        table[infosets.rows_and_moves] = policies[infosets.player][
            player.first[infosets.begin] : player.first[infosets.end]
        ]
        return table

    (tmp_path / "policy.csv").write_text(policy_tables.to_csv(tree, policies))
    solved = gdlx.solve(KUHN, iterations=20)
    solved.save(tmp_path / "solved")
    for policy in (
        function,
        policy_tables.to_json(tree, policies),
        tmp_path / "policy.csv",
        str(tmp_path / "policy.csv"),
    ):
        assert gdlx.evaluate(KUHN, policy).improvements == pytest.approx(expected, abs=1e-12)
    for saved in (solved, tmp_path / "solved", tmp_path / "solved/policy.npz"):
        judged = gdlx.evaluate(KUHN, saved)
        assert judged.exploitability == pytest.approx(solved.exploitability, rel=1e-4)
        assert judged.solution.policies[0].tolist() == pytest.approx(solved.policies[0].tolist(), abs=1e-6)


def test_uniform_is_a_policy_and_others_that_are_not_there_are_named() -> None:
    assert gdlx.evaluate("kuhn_poker", "uniform").exploitability == pytest.approx(11 / 24)
    with pytest.raises(errors.UserError, match=r"nowhere does not exist: .*`module:function`, or `uniform`"):
        gdlx.evaluate("kuhn_poker", "nowhere")


def test_missing_information_sets_are_uniform_and_named() -> None:
    remarks: list[str] = []

    def bold(infosets: function_policies.InformationSets) -> Any:
        table = np.full(infosets.legal.shape, np.nan)
        if infosets.player == 0:
            table[infosets.texts.index("(dealt jack)")] = [float(move == "bet") for move in infosets.moves]
        return table

    request = evaluate_requests.judge_request(KUHN, policy_source.find(bold))
    judged = evaluate_requests.execute(request, requests.Callbacks(warn=remarks.append))
    labels = judged.task.tree.players[0].labels
    assert [len(sets) for sets in judged.missing] == [5, 6]
    assert "(dealt jack)" not in [labels[n] for n in judged.missing[0].tolist()]
    assert judged.solution.policy("player1", "(dealt jack)") == {"bet": 1.0, "check": 0.0}
    assert judged.solution.policy("player1", "(dealt king)") == {"bet": 0.5, "check": 0.5}
    (remark,) = remarks
    assert remark.startswith("bold has nothing for 11 of 12 information sets, which are played uniformly: player1 '")
    assert "and 2 more; player2" in remark
    table = {"policy": {"player1": [{"information_set": "(dealt jack)", "actions": {"bet": 1}}]}}
    from_table = gdlx.evaluate(KUHN, table)
    assert [sets.tolist() for sets in from_table.missing] == [sets.tolist() for sets in judged.missing]
    assert from_table.improvements == judged.improvements


def write_part_of_a_table(folder: pathlib.Path, rows: int) -> pathlib.Path:
    """A hash table of random policies that lacks most information sets, as that of a sampler after a short while."""
    whole = table_policy.from_tabular(players.random_policies(KUHN, 7), gdlx.make(KUHN), samples.load_tree(KUHN))
    keys, probability = table_policy.to_arrays(whole)
    result_folder.write_table_policy(folder, table_policy.from_arrays(keys[:, :rows], probability[:rows]))
    return folder / result_folder.POLICY


def test_a_hash_table_with_few_information_sets(tmp_path: pathlib.Path) -> None:
    judged = gdlx.evaluate(KUHN, write_part_of_a_table(tmp_path, 5))
    assert sum(map(len, judged.missing)) == 7
    for player, policy, whole, sets in zip(
        judged.task.tree.players,
        judged.solution.policies,
        players.random_policies(KUHN, 7),
        judged.missing,
        strict=True,
    ):
        is_missing = np.isin(np.repeat(np.arange(player.sets), np.diff(player.first)), sets)
        expected = np.where(is_missing, tabular_policies.uniform(player)[1:], whole[1:])
        assert policy[1:].tolist() == pytest.approx(expected.tolist(), abs=1e-6)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (lambda infosets: np.ones((len(infosets), 2)), r"shape \(6, 2\) for 6 information .* shape \(6, 5\)"),
        (lambda infosets: np.full(infosets.legal.shape, 0.2), "the probability 0.2 of call, which is not legal, at pl"),
        (lambda infosets: infosets.legal * 1.0, r"add up to 2, not 1"),
        (lambda infosets: infosets.legal * np.array([np.nan, 1, 1, 1, 1]), "the probability nan of bet, which is leg"),
        (
            lambda infosets: infosets.no_such_array,
            "AttributeError: 'TreeInformationSets' object has no attribute 'no_such",
        ),
        (dict, "is a class, not an instance of one"),
        (7, "is of type int: a policy is a file, a result folder, a function"),
        ((np.ones(13),), "it has 1 players, and the game has 2"),
        ((np.ones(13), np.ones(12)), r"each of its 13 sequences, not an array of shape \(12,\)"),
        ("no_such_module:function", "there is no file no_such_module:function of a policy and no module"),
        ("gdlx.solvers.tabular_policies:none", "has no none; it has .*uniform"),
        ("none.csv", "none.csv does not exist"),
        ({"policy": {"player3": [{"information_set": "", "actions": {"bet": 1}}]}}, "has no player 'player3'"),
    ],
)
def test_what_is_no_policy_of_the_game(policy: Any, message: str) -> None:
    with pytest.raises(errors.UserError, match=message):
        gdlx.evaluate(KUHN, policy)


def test_solutions_and_results_of_other_games(tmp_path: pathlib.Path) -> None:
    other = gdlx.solve("three_card_poker", iterations=2)
    other.save(tmp_path / "other")
    with pytest.raises(errors.UserError, match="other rules"):
        gdlx.evaluate(KUHN, other)
    with pytest.raises(errors.UserError, match="was solved with other rules than kuhn_poker"):
        gdlx.evaluate(KUHN, tmp_path / "other")


def test_a_module_of_the_user(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = "def uniform(sets):\n    return sets.legal / sets.legal.sum(axis=1, keepdims=True)\n"
    (tmp_path / "my_uniform_policy.py").write_text(source)
    judged = gdlx.evaluate(KUHN, "my_uniform_policy:uniform")
    assert repr(judged) == "EvaluateResult(kuhn_poker, my_uniform_policy:uniform: exact, exploitability 0.458333)"


# ---- games that cannot be unrolled


def test_policies_that_cannot_be_played() -> None:
    with pytest.raises(game_tree.TooLargeError, match="can be judged only on the whole tree; functions, networks and"):
        gdlx.evaluate(KUHN, players.random_policies(KUHN, 0), max_nodes=1)
    pytest.importorskip("pyspiel")
    with pytest.raises(game_tree.TooLargeError, match="can be judged only on the whole tree"):
        gdlx.evaluate("spiel:kuhn_poker", uniform, max_nodes=10)


@pytest.mark.slow
def test_tables_are_bounded_where_the_tree_is_too_large(tmp_path: pathlib.Path) -> None:
    policy = write_part_of_a_table(tmp_path, 5)
    exact, remarks = gdlx.evaluate(KUHN, policy), list[str]()
    request_to_judge = evaluate_requests.judge_request(KUHN, policy_source.find(policy), max_nodes=1, bound_seconds=0.5)
    judged = evaluate_requests.execute(request_to_judge, requests.Callbacks(warn=remarks.append))
    assert "exploitability is bounded from below" in remarks[0]
    assert not judged.is_exact
    assert judged.exploitability is None
    assert judged.bound_result is not None
    assert exact.exploitability is not None
    bound = judged.bound_result.bound
    assert bound.exploitability is not None
    assert 0 < bound.exploitability < exact.exploitability + 4 * bound.standard_error
    assert f"exploitability at least {bound.exploitability:.6g}" in repr(judged)
    for value, mean, error in zip(exact.value, judged.value, judged.solution.metrics[-1].value_error, strict=True):
        assert abs(value - mean) < 5 * error


@pytest.mark.parametrize("spec", [KUHN, pytest.param("goofspiel:cards=4", marks=pytest.mark.slow)])
def test_functions_are_bounded_where_the_tree_is_too_large(spec: str) -> None:
    """The bound does not exceed the exploitability, and comes near it."""
    exact = gdlx.evaluate(spec, drawn)
    bounded = gdlx.evaluate(spec, drawn, max_nodes=1, bound_seconds=2.0)
    assert not bounded.is_exact
    assert bounded.bound_result is not None
    assert exact.exploitability is not None
    bound = bounded.bound_result.bound
    assert bound.exploitability is not None
    assert bound.exploitability < exact.exploitability + 4 * bound.standard_error
    assert bound.exploitability > 0.6 * exact.exploitability
    errors_of_value = bounded.solution.metrics[-1].value_error
    for value, mean, error in zip(exact.value, bounded.value, errors_of_value, strict=True):
        assert abs(value - mean) < 5 * error
    assert bounded.solution.policies[0].tolist() == pytest.approx(exact.solution.policies[0].tolist(), abs=1e-6)


def drawn(infosets: function_policies.InformationSets) -> Any:
    """A policy that looks random, and depends on all that a player knows: by its key."""
    weight = (infosets.keys[:, :1].astype(np.uint64) * np.arange(1, 1 + infosets.legal.shape[1], dtype=np.uint64)) % 997
    weight = (weight + 1) * infosets.legal
    return weight / weight.sum(axis=1, keepdims=True)


def test_matches_ask_what_trees_ask() -> None:
    """For the information sets that matches reach: the same texts, moves, percepts, keys and legal moves."""
    spec, asked = "leduc_poker", dict[bytes, tuple[Any, ...]]()

    def remember(infosets: function_policies.InformationSets) -> Any:
        for n, key in enumerate(infosets.keys):
            step = infosets.steps[n]
            what = (infosets.made[n][:step].tolist(), infosets.seen[n][:step].tolist(), infosets.legal[n].tolist())
            row = (infosets.player_name, infosets.texts[n], infosets.moves, infosets.percepts, *what)
            assert asked.setdefault(bytes([infosets.player]) + key.tobytes(), row) == row
        return uniform(infosets)

    gdlx.evaluate(spec, remember)
    assert len(asked) == 936
    bounded = gdlx.evaluate(spec, remember, max_nodes=1, bound_seconds=0.1)
    assert not bounded.is_exact
    assert len(asked) == 936


def test_what_is_shown_of_a_game_too_large_is_the_function() -> None:
    """Also where no match went: it always bids the lowest card, so that matches reach few information sets."""

    def lowest(infosets: function_policies.InformationSets) -> Any:
        return np.eye(infosets.legal.shape[1])[infosets.legal.argmax(axis=1)]

    judged = gdlx.evaluate("goofspiel:cards=4", lowest, max_nodes=1, bound_seconds=0.1)
    assert not judged.is_exact
    exact = gdlx.evaluate("goofspiel:cards=4", lowest)
    for shown, expected in zip(judged.solution.policies, exact.solution.policies, strict=True):
        assert shown.tolist() == expected.tolist()


def test_functions_that_fail_in_matches() -> None:
    game = packed_env.PackedEnv(gdlx.make(KUHN))
    for function, message in (
        (lambda infosets: infosets.legal * 1.0, "add up to 2, not 1, or a negative one, at player"),
        (lambda infosets: np.ones((len(infosets), 2)), "return an array of shape"),
        (lambda infosets: 1 / 0, "ZeroDivisionError"),
    ):
        with pytest.raises(policy_source.PolicyError, match=message):
            function_bound.search(game, function, "it", seconds=0.1, steps=8)
    missing = function_bound.search(
        game, lambda infosets: np.full(infosets.legal.shape, np.nan), "it", seconds=0.1, steps=8
    )
    assert missing.missing == 12
    with pytest.raises(search_bounds.UnfinishedMatchesError, match="capacity of 2 joint actions"):
        function_bound.search(game, uniform, "it", seconds=0.1, steps=2)


# ---- what functions are asked


@pytest.mark.parametrize("spec", [KUHN, "goofspiel:cards=3,order=random", "smallest:players=3,numbers=2,steps=2"])
def test_functions_see_what_players_see(spec: str) -> None:
    """Moves and percepts, played again step by step in the environment, lead to the same keys and legal moves."""
    tree, env = samples.load_tree(spec), gdlx.make(spec)
    for number, player in enumerate(tree.players):
        infosets = function_policies.TreeInformationSets(tree, number, 0, player.sets)
        assert infosets.texts == list(player.labels)
        assert infosets.percepts == env.propnet.players[number].percepts
        assert infosets.moves == env.propnet.players[number].moves
        assert ((infosets.made >= 0).sum(axis=1) == infosets.steps).all()
        for n in range(len(infosets)):
            assert [infosets.moves[m] for m in np.flatnonzero(infosets.legal[n])] == player.options(n)
        events = {
            (infosets.made[n].tobytes(), infosets.seen[n].tobytes(), infosets.legal[n].tobytes())
            for n in range(len(infosets))
        }
        assert len(events) == len(infosets)
        assert len({key.tobytes() for key in infosets.keys}) == len(infosets)
        for n, text in enumerate(infosets.texts):
            percepts = [infosets.percepts[q] for step in infosets.seen[n] for q in np.flatnonzero(step)]
            assert all(percept in text for percept in percepts)


def test_histories_of_trees_in_blocks_are_whole() -> None:
    """Blocks leave out steps in which a player waits; the function sees them all the same."""
    propnet = games.compile_game("phantom_ttt:width=2,height=2,line=2")
    trees = unroll.unroll(propnet), unroll_blocks.unroll(propnet)
    for number in range(2):
        listed, blocks = (
            function_policies.TreeInformationSets(tree, number, 0, tree.players[number].sets) for tree in trees
        )
        assert trees[1].players[number].views.waits is not None  # type: ignore[union-attr]

        def events(infosets: function_policies.InformationSets) -> set[tuple[bytes, bytes]]:
            return {
                (infosets.made[n][:step].tobytes(), infosets.seen[n][:step].tobytes())
                for n, step in enumerate(infosets.steps.tolist())
            }

        assert events(listed) == events(blocks)


def test_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = samples.load_tree("leduc_poker")
    whole = function_policies.tabulate(uniform, "uniform", tree)
    monkeypatch.setattr(function_policies, "BATCH", 100)
    for policy, other, player in zip(whole, function_policies.tabulate(uniform, "u", tree), tree.players, strict=True):
        assert policy.tolist() == other.tolist() == tabular_policies.uniform(player).tolist()
