"""Public states and their values, against rules written by hand; and a network that learns the values."""

import functools
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gdlx
from gdlx.envs import game_spec
from gdlx.envs.trees import game_tree
from gdlx.envs.views import observation_window
from gdlx.nets import checkpoints
from gdlx.nets.learners import supervised
from gdlx.nets.models import encoders
from gdlx.nets.values import depth_limited, infoset_tables, public_states, range_network, subgame_values
from gdlx.solvers import tabular_policies, tasks
from gdlx.solvers.exact import best_response, realization_plans

CARDS = ("jack", "queen", "king")


@functools.cache
def task_of(game: str) -> tasks.TreeTask:
    return tasks.make_tree_task(game_spec.GameSpec(game), keep_edges=True)


def _drawn(task: tasks.TreeTask, seed: int, low: float = 0.1) -> tabular_policies.Policies:
    rng = np.random.default_rng(seed)
    return tuple(tabular_policies.normalise(own, rng.uniform(low, 1, own.sequences)) for own in task.tree.players)


def _known(player: game_tree.Player, view: int) -> tuple[str, str]:
    """The card and the first bet or check in a view of kuhn_poker, if there was one."""
    trail = player.views
    assert isinstance(trail, game_tree.InfosetTree)
    card, made = "", ""
    while trail.parent[view] >= 0:
        if trail.was_choice[view]:
            made = player.action_names[trail.move[view]]
        for number in np.flatnonzero(trail.percepts[trail.percept[view]]):
            _, _, what = trail.percept_names[number].strip("()").rpartition(" ")
            if what in CARDS:
                card = what
            elif not trail.was_choice[view]:
                made = what
        view = int(trail.parent[view])
    return card, made


def test_public_states_of_kuhn_are_the_betting_histories() -> None:
    tree = task_of("kuhn_poker").tree
    assert public_states.find_public_states(tree, 2).states == 1
    actual = public_states.find_public_states(tree, 3)
    assert actual.states == 2
    assert actual.weight.sum() == pytest.approx(2.0)
    words = [_known(tree.players[who], view) for who, view in zip(actual.player, actual.view, strict=True)]
    for state in range(2):
        here = [word for word, policy in zip(words, actual.state, strict=True) if policy == state]
        assert {card for card, _ in here} == set(CARDS)
        assert len(here) == 2 * len(CARDS)
        assert len({made for _, made in here}) == 1
    assert {made for _, made in words} == {"bet", "check"}
    # After two moves only the history check, bet continues, and no other player has chosen before.
    assert public_states.find_public_states(tree, 4).states == 1
    assert public_states.cut_depths(tree, 1) == (3, 4)
    with pytest.raises(public_states.CutError, match="over after 5"):
        public_states.find_public_states(tree, 5)
    with pytest.raises(public_states.CutError, match="1 joint action or more"):
        public_states.cut_depths(tree, 0)
    with pytest.raises(public_states.CutError, match="without its edges"):
        public_states.find_public_states(game_spec.unroll_game(game_spec.GameSpec("kuhn_poker")), 3)


def test_values_of_kuhn_by_hand() -> None:
    """The players' best responses after the first bet or check, by the rules of Kuhn (1950)."""
    task = task_of("kuhn_poker")
    policies = _drawn(task, 0)
    chance: list[dict[tuple[str, str], dict[str, float]]] = []
    for player, policy in zip(task.tree.players, policies, strict=True):
        table = {}
        for number in range(player.sets):
            options = policy[player.first[number] : player.first[number + 1]]
            table[_known(player, player.view[number])] = dict(zip(player.options(number), options, strict=True))
        chance.append(table)
    first, second = chance

    def shows(mine: str, other: str, stake: float) -> float:
        return stake if CARDS.index(mine) > CARDS.index(other) else -stake

    def worth(who: int, mine: str, made: str) -> float:
        others = [card for card in CARDS if card != mine]
        if who == 0 and made == "bet":
            return sum(
                second[card, "bet"]["call"] * shows(mine, card, 2) + second[card, "bet"]["fold"] for card in others
            ) / len(others)
        if who == 0:
            checked = sum(second[card, "check"]["check"] * shows(mine, card, 1) for card in others)
            call = sum(second[card, "check"]["bet"] * shows(mine, card, 2) for card in others)
            fold = sum(-second[card, "check"]["bet"] for card in others)
            return (checked + max(call, fold)) / len(others)
        likely = {card: first[card, ""][made] for card in others}
        if made == "bet":
            actual = max(sum(likely[card] * shows(mine, card, 2) for card in others), -sum(likely.values()))
        else:
            answer = {card: first[card, "check"] for card in others}
            bet = sum(
                likely[card] * (answer[card]["call"] * shows(mine, card, 2) + answer[card]["fold"]) for card in others
            )
            actual = max(bet, sum(likely[card] * shows(mine, card, 1) for card in others))
        return actual / sum(likely.values())

    rest = subgame_values.make_subgame_evaluator(task, 3)
    actual = jax.jit(rest.values)(tabular_policies.to_levels(task.tree, task.layouts, policies))
    public = rest.public
    expected = [
        worth(who, *_known(task.tree.players[who], view)) for who, view in zip(public.player, public.view, strict=True)
    ]
    np.testing.assert_allclose(actual, expected, atol=1e-5)


@pytest.mark.parametrize(("game", "depth"), [("kuhn_poker", 4), ("goofspiel:cards=3", 1)])
def test_a_game_is_worth_its_trunk_and_its_public_states(game: str, depth: int) -> None:
    task = task_of(game)
    policies = _drawn(task, 1)
    profile = tabular_policies.to_levels(task.tree, task.layouts, policies)
    rest = subgame_values.make_subgame_evaluator(task, depth)
    public = rest.public
    trunk = public_states.trunk(task.tree, depth)
    reach = [
        tabular_policies.realization_plan(player, policy)
        for player, policy in zip(task.tree.players, policies, strict=True)
    ]
    ranges = public_states.ranges(public, [jnp.asarray(policy) for policy in reach])
    below = ranges * public_states.counterfactual_reach(public, ranges) * jax.jit(rest.values)(profile)
    ended = trunk.terminals.weight * np.prod(
        [policy[at] for policy, at in zip(reach, trunk.terminals.sequence.T, strict=True)], axis=0
    )
    for number, player in enumerate(task.tree.players):
        best, _ = best_response.best_response(task.form, profile, number)
        answer = tabular_policies.player_from_levels(task.layouts[number], best)
        is_early = np.concatenate([[True], np.repeat(player.step < depth, np.diff(player.first))])
        mixed = list(policies)
        mixed[number] = np.where(is_early, policies[number], answer)
        expected = task.metrics(tuple(mixed)).value[number]
        actual = below[public.of_player(number)].sum() + ended @ trunk.terminals.payoff[:, number]
        assert actual == pytest.approx(expected, abs=1e-4 * np.ptp(task.payoff_range))


def test_views_look_as_they_do_in_matches() -> None:
    task = task_of("kuhn_poker")
    encoder = encoders.Encoder(gdlx.make("kuhn_poker"), steps=4)
    env = encoder.env

    def match(key: jax.Array) -> tuple[jax.Array, jax.Array]:
        state = env.init()
        window = encoder.window(state)
        for own in jax.random.split(key, 3):
            moves, chance = jax.random.split(own)
            action = jax.random.categorical(moves, jnp.where(state.legal_mask, 0.0, -jnp.inf))
            state = env.step(state, action, chance)
            window = observation_window.update(window, state)
        return encoder.information_state(window), state.terminated

    seen, is_over = jax.jit(jax.vmap(match))(jax.random.split(jax.random.key(0), 200))
    assert not is_over.any()
    met = np.unique(np.asarray(seen).reshape(-1, encoder.width), axis=0)
    place = range_network.encode_public_states(encoder, task.tree, public_states.find_public_states(task.tree, 3))
    np.testing.assert_array_equal(met, np.unique(place.seen, axis=0))


def test_range_networks_are_invariant_to_order_and_scale() -> None:
    task = task_of("goofspiel:cards=3")
    encoder = encoders.Encoder(gdlx.make("goofspiel:cards=3"), steps=3)
    public = public_states.find_public_states(task.tree, 1)
    place = range_network.encode_public_states(encoder, task.tree, public)
    network = range_network.RangeValueNetwork(8, (8, 8))
    variables = range_network.init_params(network, place, jax.random.key(0))
    ranges = jax.random.uniform(jax.random.key(1), (public.views, 2), minval=0.1)

    def predicted(where: range_network.EncodedPublicStates, ranges: jax.Array) -> jax.Array:
        return jnp.asarray(network.apply(variables, where, ranges))

    actual = predicted(place, ranges)
    scale = jnp.where(public.player == 0, 3.0, 0.5)[:, None]
    np.testing.assert_allclose(predicted(place, ranges * scale), actual, atol=1e-5)
    balanced = range_network.enforce_zero_sum(public, ranges, actual)
    mass = ranges * public_states.counterfactual_reach(public, ranges)
    sums = jax.ops.segment_sum(mass * balanced, public.state, num_segments=public.states)
    np.testing.assert_allclose(sums, 0, atol=1e-6)
    assert abs(jax.ops.segment_sum(mass * actual, public.state, num_segments=public.states)).max() > 1e-3
    # Views of a player in another order: their values go with them.
    order = np.arange(public.views)
    order[: len(order) // 2] = order[: len(order) // 2][::-1]
    turned = public_states.PublicStates(
        public.depth,
        public.players,
        public.states,
        public.view[order],
        public.player,
        public.sequence[order],
        public.state[order],
        np.argsort(order)[public.node].astype(np.int32),
        public.weight,
    )
    other = predicted(range_network.EncodedPublicStates(turned, place.seen[order]), ranges[order])
    np.testing.assert_allclose(other, np.asarray(actual)[order], atol=1e-5)


@functools.cache
def trained() -> tuple[supervised.Supervised, supervised.State, list[dict[str, float]]]:
    """On kuhn_poker, cut after the first bet or check."""
    settings = supervised.Settings(depth=3, solving=200, batch=128, steps=400, horizon=1_600)
    learner = supervised.make_for_game("kuhn_poker", settings)
    state = jax.jit(learner.init)(jax.random.key(0))
    iterate = jax.jit(learner.iterate)
    reports = []
    for _ in range(4):
        state, report = iterate(state)
        reports.append({name: float(value) for name, value in report.items()})
    return learner, state, reports


@pytest.mark.slow
def test_values_are_learnt() -> None:
    learner, state, reports = trained()
    assert repr(learner) == "Supervised(game='kuhn_poker', cuts=(3,), batch=128, capacity=8192)"
    assert reports[0]["value_error_fresh"] > 0.1  # the error of an untrained network
    assert reports[-1]["value_error"] < 0.02
    assert reports[-1]["value_error_played"] < 0.02
    assert reports[-1]["value_loss"] < reports[0]["value_loss"]
    drawn = state.buffer.items.ranges[: int(state.buffer.filled)]
    assert len(np.unique(np.concatenate([drawn, state.held_out.ranges]), axis=0)) == len(drawn) + len(
        state.held_out.ranges
    )


def test_a_checkpoint_has_all_of_a_state(tmp_path: pathlib.Path) -> None:
    """Iterations are functions of it alone: a restored state continues as if training had never stopped."""
    learner, state, _ = trained()
    checkpoints.write_state(tmp_path, 4, 0.0, state)
    actual, _, _ = checkpoints.read_state(tmp_path, jax.eval_shape(learner.init, jax.random.key(0)))
    for read, written in zip(jax.tree.leaves(actual), jax.tree.leaves(state), strict=True):
        assert read.dtype == written.dtype
        assert bool((read == written).all())


def test_policies_are_learnt() -> None:
    learner, state, reports = trained()
    assert reports[-1]["policy_loss"] < reports[0]["policy_loss"]
    metrics = learner.task.metrics(
        infoset_tables.network_policies(learner, learner.policy_params(state), learner.task.tree)
    )
    assert sum(metrics.improvements) / 2 < 0.02


def test_solving_with_learnt_values_comes_near() -> None:
    learner, state, _ = trained()

    def gain(values: depth_limited.ValueFn) -> float:
        actual = depth_limited.solve(learner.task, 3, values, iterations=300, lanes=16)
        return sum(learner.task.metrics(actual).improvements) / 2

    learnt = gain(depth_limited.network_values(learner, learner.values(state)))
    assert learnt < 0.02 * 4  # 2 % of the payoff range
    assert learnt < 0.5 * gain(depth_limited.zero_values)


def test_a_game_without_cuts() -> None:
    with pytest.raises(supervised.NothingToLearnError, match="no choices both before and after"):
        supervised.make_for_game("kuhn_poker", supervised.Settings(depth=9))


def test_realization_plans_of_batches() -> None:
    """With uniform policies that have a batch axis of their own."""
    player = task_of("kuhn_poker").form.players[0]
    wide = player._replace(uniform=tuple(jnp.repeat(level[..., None], 2, axis=-1) for level in player.uniform))
    vector = jnp.arange(26.0).reshape(13, 2)
    for plan, other in zip(
        realization_plans.unflatten(player, vector), realization_plans.unflatten(wide, vector), strict=True
    ):
        np.testing.assert_array_equal(plan, other)
