"""Self-play: environment and network steps per second, and the strength of networks trained on a large game."""

import pathlib
import tempfile
import time
from collections.abc import Iterator
from typing import Any

from gdlx.experiments.bench import harness

_GAMES, _WIDTHS = 4_096, (128, 128)
_PEER_STEPS = 3_000
_MINUTES = 10.0  # at most 60
_UNIFORM_OPPONENT_FRACTION = 0.8  # of the training games; the test opponent plays uniformly too
_LARGE = "blind_tictactoe:bias=even"
_MATCHES = 10_000  # for each role
# West 2024 (UNSW), Table 3: goals out of 100 against uniform play after 16 hours of training, over 100 games each.
PUBLISHED = {"West's framework": {"x": 74.0, "o": 73.0}, "the framework before it": {"x": 79.5, "o": 79.5}}


def speed_figures() -> Iterator[harness.Figure]:
    """Networks of the same size choose every action; compile times are left out on both sides."""
    name, ours, peer = (
        "leduc_poker: steps a second, environment and network",
        _our_steps_per_second(),
        _peer_steps_per_second(),
    )
    if peer is None:
        yield harness.missing_peer(name, "OpenSpiel", ours, "steps/s", better="higher")
        return
    yield harness.Figure(
        name,
        ours,
        "steps/s",
        better="higher",
        peer="OpenSpiel's states in a Python loop, the same network compiled",
        peer_value=peer,
        target=harness.Target(20, of="ratio"),
    )


def _our_steps_per_second() -> float:
    import jax

    from gdlx.nets import vectorised_play
    from gdlx.nets.models import encoders, networks
    from gdlx.players.matches import arenas

    arena = arenas.make_arena("leduc_poker")
    env = arena.env
    encoder = encoders.Encoder(env, 8)
    network = networks.Network(env.num_players, env.num_actions, _WIDTHS)
    parameters = networks.init_params(network, encoder.width, jax.random.key(0))
    policy = vectorised_play.network_policy(encoder, network)

    def steps(key: int) -> int:
        matches = vectorised_play.play(
            env,
            (policy, policy),
            (parameters, parameters),
            jax.random.key(key),
            matches=_GAMES,
            steps=arena.steps,
            window=encoder.steps,
        )
        return int(matches.length.sum())

    steps(0)
    begun = time.perf_counter()
    count = sum(steps(key) for key in range(1, 6))
    return count / (time.perf_counter() - begun)


def _peer_steps_per_second() -> float | None:
    try:
        import pyspiel
    except ImportError:
        return None
    import jax
    import jax.numpy as jnp
    import numpy as np

    from gdlx.nets.models import networks

    game = pyspiel.load_game("leduc_poker")
    network = networks.Network(2, game.num_distinct_actions(), _WIDTHS)
    width = game.information_state_tensor_size()
    parameters = networks.init_params(network, width, jax.random.key(0))
    rng = np.random.default_rng(0)

    @jax.jit
    def policy(tensor: Any, legal: Any, player: Any) -> Any:
        output = networks.apply_network(network, parameters, tensor[None])
        return networks.masked_softmax(output.logits[0, player], legal)

    def play(steps: int) -> None:
        done = 0
        while done < steps:
            state = game.new_initial_state()
            while not state.is_terminal():
                if state.is_chance_node():
                    outcomes, probabilities = zip(*state.chance_outcomes(), strict=True)
                    state.apply_action(rng.choice(outcomes, p=probabilities))
                else:
                    tensor = np.asarray(state.information_state_tensor(), np.float32)
                    legal = np.asarray(state.legal_actions_mask(), np.bool_)
                    weights = np.asarray(policy(jnp.asarray(tensor), jnp.asarray(legal), state.current_player()), float)
                    state.apply_action(int(rng.choice(len(weights), p=weights / weights.sum())))
                done += 1

    play(10)
    begun = time.perf_counter()
    play(_PEER_STEPS)
    return _PEER_STEPS / (time.perf_counter() - begun)


def strength_figures() -> Iterator[harness.Figure]:
    """Trains for some minutes, then plays each role against uniform play.

    Not like for like: the opponent of the test is also in most of our training games, and the published frameworks
    trained for 16 hours.
    """
    from gdlx.envs import game_facts, game_spec
    from gdlx.nets import evaluation, training
    from gdlx.nets.learners import learner_registry
    from gdlx.propnet import games
    from gdlx.solvers.runs import driver

    propnet = games.compile_game(_LARGE)
    settings = learner_registry.make_settings(
        "self-play", {"uniform_opponent_fraction": str(_UNIFORM_OPPONENT_FRACTION)}
    )
    config = learner_registry.TrainConfig(
        game_spec.GameSpec(_LARGE), "self-play", learner_registry.default_window(propnet, None), settings
    )
    learner = learner_registry.make_learner(config, propnet, None)
    with tempfile.TemporaryDirectory() as folder:
        run = training.TrainingRun(config, learner, game_facts.probe(propnet).digest, pathlib.Path(folder))
        for _ in run.points(driver.StopCondition(None, 60 * _MINUTES)):
            pass
        run.finish()
    result = evaluation.evaluate_against_random(learner, learner.policy_params(run.state), games=_MATCHES)
    for role, goal, error in zip(learner.encoder.env.players, result.goal, result.error, strict=True):
        for whose, goals in PUBLISHED.items():
            yield harness.Figure(
                f"{_LARGE}: goals as {role} against random beside {whose}, not like for like, "
                f"{run.seconds / 60:.0f} minutes of training, ± {error:.1f}",
                goal,
                "of 100",
                better="higher",
                peer=f"West 2024, 16 hours, {whose}",
                peer_value=goals[role],
                target=harness.Target(goals[role], of="value"),
                note=f"not like for like: ours met the random opponent in {_UNIFORM_OPPONENT_FRACTION:.0%} of its "
                f"training games; peer: West 2024, {whose}, 16 hours of training",
            )
