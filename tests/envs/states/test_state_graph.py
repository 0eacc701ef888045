"""Graphs of states: against the rules' interpreter, and what is refused."""

import itertools
from typing import Any

import numpy as np
import pytest

from gdlx.envs.states import known_state, layers, state_graph, state_index, state_information, state_labels
from gdlx.envs.trees import game_tree
from gdlx.propnet import games
from gdlx.propnet.circuits import compiler
from gdlx.propnet.datalog import interpreter
from gdlx.tests.helpers import playing

LADDER = """
; A state is reached after different numbers of steps: one takes 1 or 2 of 4 matches, in turn or not at all.
(role first) (role second)
(init (left 4)) (init (turn first))
(<= (legal ?p (take ?n)) (true (turn ?p)) (true (left ?k)) (minus ?k ?n ?l))
(<= (legal ?p wait) (role ?p) (not (true (turn ?p))))
(<= (next (left ?l)) (does ?p (take ?n)) (true (left ?k)) (minus ?k ?n ?l))
(<= (next (turn second)) (true (turn first))) (<= (next (turn first)) (true (turn second)))
(<= (next (left ?l)) (true (left ?l)) (not (somebody_takes)))
(<= (somebody_takes) (does ?p (take ?n)))
(minus 4 1 3) (minus 3 1 2) (minus 2 1 1) (minus 1 1 0) (minus 4 2 2) (minus 3 2 1) (minus 2 2 0)
(<= terminal (true (left 0)))
(<= (goal ?p 0) (role ?p) (true (turn ?p))) (<= (goal ?p 100) (role ?p) (not (true (turn ?p))))
"""
ENDLESS = """
(role walker) (role watcher)
(init (at a)) (init (seen none))
(legal watcher watch) (legal walker stay) (legal walker go)
(<= (next (at a)) (does walker stay) (true (at a))) (<= (next (at b)) (does walker go) (true (at a)))
(<= (next (at a)) (does walker go) (true (at b))) (<= (next (at c)) (does walker stay) (true (at b)))
(<= terminal (true (at c)))
(goal walker 100) (goal watcher 0)
"""
DICE = """
(role player) (role random)
(init (face 1)) (init (step 1)) (succ 1 2) (succ 2 3)
(<= (legal random (roll 1))) (<= (legal random (roll 2))) (<= (legal random (roll 3)) (true (step 1)))
(legal player keep) (legal player swap)
(<= (sees player (rolled ?n)) (does random (roll ?n)))
(<= (next (face ?n)) (does random (roll ?n)) (does player swap))
(<= (next (face ?n)) (true (face ?n)) (does player keep))
(<= (next (step ?n)) (true (step ?m)) (succ ?m ?n))
(<= terminal (true (step 3)))
(<= (goal player 10) (true (face 1))) (<= (goal player 20) (true (face 2))) (<= (goal player 60) (true (face 3)))
"""


def texts(state: Any) -> str:
    return "; ".join(sorted(playing.texts(state)))


def explore(game: interpreter.Interpreter) -> dict[str, dict[tuple[str, ...], str]]:
    """The state after each joint action of every state, by text, from the rules themselves."""
    collected: dict[str, dict[tuple[str, ...], str]] = {}
    waiting = [game.initial]
    while waiting:
        state = waiting.pop()
        if (name := texts(state)) in collected:
            continue
        collected[name] = {}
        if game.is_terminal(state):
            continue
        options = game.legal(state)
        for joint in itertools.product(*options.values()):
            after = game.next(state, dict(zip(options, joint, strict=True)))
            collected[name][tuple(map(str, joint))] = texts(after)
            waiting.append(after)
    return collected


@pytest.mark.parametrize("rules", [LADDER, DICE], ids=["ladder", "dice"])
def test_states_and_successors_are_those_of_the_rules(rules: str) -> None:
    game = games.compile_game(rules=rules)
    graph = state_graph.build(game)
    by_rules = explore(playing.load_interpreter(rules))
    assert graph.states == len(by_rules)
    assert graph.edges == sum(map(len, by_rules.values()))
    # As multisets of numbers of successors: fluents that never change are not in the labels.
    ours = sorted(tuple(sorted(graph.successor[a:b].tolist())) for a, b in itertools.pairwise(graph.first_edge))
    names = {name: number for number, name in enumerate(by_rules)}
    theirs = [sorted(names[after] for after in edges.values()) for edges in by_rules.values()]
    assert sorted(map(len, ours)) == sorted(map(len, theirs))
    assert sorted(len(set(row)) for row in ours) == sorted(len(set(row)) for row in theirs)
    assert sorted(np.bincount(graph.successor, minlength=graph.states).tolist()) == sorted(
        np.bincount(np.concatenate(theirs).astype(int), minlength=len(names)).tolist()
    )


@pytest.mark.parametrize("name", ["tictactoe", "simultaneous_tictactoe", "repeated_rps:rounds=4"])
def test_library_games_have_distinct_labels_and_ordered_layers(name: str) -> None:
    graph = state_graph.build(games.compile_game(name))
    source = np.repeat(np.arange(graph.states), np.diff(graph.first_edge))
    assert (graph.layer[graph.successor] > graph.layer[source]).all()
    assert (np.diff(graph.layer) >= 0).all()
    labels = state_labels.StateLabels(games.compile_game(name), graph.words)
    assert len(set(labels)) == graph.states
    batched = np.concatenate([batch.states for batch in graph.batches])
    assert sorted(batched.tolist()) == np.flatnonzero(~graph.is_terminal).tolist()


def test_a_state_that_is_reached_after_different_numbers_of_steps_is_one_state() -> None:
    graph = state_graph.build(games.compile_game(rules=LADDER))
    # 4 | 3, 2 | 2, 1, 1, 0 | ..: (left, whose turn), by hand.
    assert (graph.states, graph.depth) == (8, 4)
    assert graph.layer.tolist()[0] == 0


def test_a_cycle_is_refused_with_its_joint_actions() -> None:
    with pytest.raises(
        game_tree.TooLargeError, match=r"need not end: the state \(at a\) is reached again after \[stay watch\]"
    ):
        state_graph.build(games.compile_game(rules=ENDLESS))


def test_hidden_states_are_refused_with_what_is_hidden() -> None:
    with pytest.raises(state_graph.HiddenStateError, match=r"kuhn_poker.*player2 cannot tell"):
        state_graph.build(games.compile_game("kuhn_poker"))


def test_too_many_states_are_refused_with_how_many_were_found() -> None:
    with pytest.raises(game_tree.TooLargeError, match=r"334 were found in 3 steps.*max_nodes="):
        state_graph.build(games.compile_game("tictactoe"), max_joint_actions=2_000)


def test_a_state_with_too_many_joint_actions_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_graph, "_MAX_BLOCK_BYTES", 50)
    with pytest.raises(game_tree.TooLargeError, match="a state with 9 joint actions"):
        state_graph.build(games.compile_game("rps"))


def test_an_unproved_game_is_checked_while_it_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    # If neither proof nor random play decides, the graph's own check must.
    unknown = state_information.StateInformation(True, False, (0, 1))
    monkeypatch.setattr(state_information, "infer_state_information", lambda game: unknown)
    with pytest.raises(state_graph.HiddenStateError, match="cannot tell"):
        state_graph.build(games.compile_game("kuhn_poker"))
    assert state_graph.build(games.compile_game("tictactoe")).states == 5_478


def test_the_index_numbers_as_a_dictionary_does() -> None:
    rng = np.random.default_rng(0)
    index = state_index.StateIndex(2)
    numbers: dict[tuple[int, ...], int] = {}
    for _ in range(30):
        rows = np.unique(rng.integers(0, 12, (40, 2)).astype(np.uint64), axis=0)
        rng.shuffle(rows)
        actual = index.add(rows)
        expected = [numbers.setdefault(tuple(row), len(numbers)) for row in rows.tolist()]
        assert actual.tolist() == expected
    assert len(index) == len(numbers)
    assert index.find(np.array([[99, 99]], np.uint64)).tolist() == [-1]


def test_rows_with_equal_hashes_stay_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.array([[3, 1], [2, 1], [3, 1], [2, 2]], np.uint64)
    monkeypatch.setattr(state_index, "_hash", lambda words: np.zeros(len(words), np.uint64))
    numbering = state_index.number_words(rows)
    assert numbering.number.tolist() == [0, 1, 0, 2]
    assert numbering.example.tolist() == [0, 1, 3]


def test_longest_paths_are_those_of_a_recursion() -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        size = 30
        after = [sorted(rng.choice(np.arange(n + 1, size), min(3, size - n - 1), replace=False)) for n in range(size)]
        after[0] = list(range(1, size))  # all can be reached
        first = np.concatenate([[0], np.cumsum([len(row) for row in after])])
        expected = [0] * size
        for state, row in enumerate(after):
            for child in row:
                expected[child] = max(expected[child], expected[state] + 1)
        actual = layers.longest_paths(first, np.concatenate(after).astype(np.int32))
        assert actual is not None
        assert actual.tolist() == expected


def test_a_player_follows_the_state_through_a_match() -> None:
    from gdlx.envs import make_env
    from gdlx.envs.views import history

    env = make_env.make(rules=DICE)
    game = env.propnet
    rolled = {name: n for n, name in enumerate(game.players[0].percepts)}
    view = history.ActionObservationHistory(env, 0, (0, 1))
    view = view.after(history.Event(game.players[0].moves.index("swap"), (rolled["(rolled 2)"],), (0, 1)))
    state = known_state.known_state(view)
    words = state_labels.pack_columns(state[:, None])
    assert "(face 2)" in state_labels.StateLabels(game, words)[0]
    with pytest.raises(known_state.UnknownStateError):
        known_state.known_state(view.after(history.Event(0, (rolled["(rolled 3)"],), (0, 1))))


@pytest.mark.parametrize("name", ["tictactoe", "simultaneous_tictactoe"])
def test_states_are_numbered_alike_however_the_propnet_was_simplified(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So that saved policies, which are in the order of the states, survive another version of the compiler.
    sheet = games.load_rulesheet(name)
    small = compiler.compile_rulesheet(sheet)
    simplified = state_graph.build(small)
    monkeypatch.setattr(compiler, "simplify", lambda propnet, report=None: propnet)
    raw = compiler.compile_rulesheet(sheet)
    plain = state_graph.build(raw)
    assert (len(raw.initial), raw.gates) != (len(small.initial), small.gates)
    np.testing.assert_array_equal(plain.successor, simplified.successor)
    np.testing.assert_array_equal(plain.decision, simplified.decision)
    np.testing.assert_array_equal(plain.payoff, simplified.payoff)
