"""Public objects print in one short line: they are looked at in notebooks and error messages."""

import pathlib

import jax
import jax.numpy as jnp

import gdlx
from gdlx.envs.packed import packed_env, sharded_playouts
from gdlx.envs.trees import sequence_form
from gdlx.experiments.sweeps import config, run
from gdlx.nets.models import networks, replay_buffers
from gdlx.players.agents import agent_registry
from gdlx.solvers import requests, solve_requests


def objects() -> dict[str, object]:
    env, tree = gdlx.make("rps"), gdlx.unroll("rps")
    packed = packed_env.PackedEnv(env)
    state = jax.eval_shape(lambda: packed.start(64))
    games = env.batched(32)
    timestep = jax.eval_shape(lambda: games.step(games.reset(), games.legal(games.reset()).first(), jax.random.key(0)))[
        1
    ]
    request = requests.SolveRequest("rps", iterations=2)
    solved = solve_requests.execute(request)
    stats = sharded_playouts.PlayoutStats(None, 12, 3, 0, 0, 0, 0, ())  # type: ignore[arg-type]
    return {
        "env": env,
        "propnet": env.propnet,
        "role": env.propnet.roles[0],
        "tree": tree,
        "player": tree.players[0],
        "sequence form": sequence_form.sequence_form(tree)[0],
        "solution": gdlx.solve("rps", "lp"),
        "solve request": request,
        "solve result": solved,
        "metrics": solved.solution.metrics[-1],
        "evaluate request": requests.EvaluateRequest(pathlib.Path("results/rps/dcfr"), bound=True),
        "evaluate result": gdlx.evaluate("rps", solved.solution),
        "batched environment": games,
        "step of a batch": timestep,
        "states of a batch": games.reset(),
        "legal actions": games.legal(games.reset()),
        "chosen actions": gdlx.random_actions(jax.random.key(0), games.legal(games.reset())),
        "terminals": tree.terminals,
        "listed terminals": tree.listed_terminals,
        "network": networks.Network(players=2, moves=3),
        "sweep": config.Sweep(
            "grid", config.expand_cells({"games": ["rps"], "iterations": 3, "algorithms": [{"name": "cfr"}]})
        ),
        "sweep result": run.SweepResult(
            pathlib.Path("results/grid"), 30, 0, (("rps/cfr", "it failed"),), pathlib.Path("t")
        ),
        "packed environment": packed,
        "packed state": state,
        "playouts": stats,
        "replay buffer": replay_buffers.init(jnp.float32(0), capacity=4),
    } | {name: agent_registry.make_agent(name) for name in ("random", "mccfr:seconds=1", "oos", "uct", "pimc", "cfr")}


def test_one_short_line() -> None:
    shown = {name: repr(value) for name, value in objects().items()}
    assert {name: text for name, text in shown.items() if "\n" in text or len(text) >= 120} == {}
    assert {name: text for name, text in shown.items() if text.count("(") != text.count(")") or "[...]" in text} == {}


def test_only_changes_are_shown() -> None:
    request = requests.SolveRequest("rps", settings={"gamma": 3.0}, seconds=2.0)
    assert repr(request) == "SolveRequest(game='rps', seconds=2.0, settings={'gamma': 3.0})"
    assert repr(agent_registry.make_agent("uct:trees=4")) == "UctAgent(name='uct:trees=4', trees=4)"
