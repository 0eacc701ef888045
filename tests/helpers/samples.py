"""Shared by tests of samplers: games, random policies, and processes with several devices."""

import functools
import subprocess
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gdlx.envs import game_spec
from gdlx.envs.trees import game_tree, sampling_form
from gdlx.solvers import tabular_policies
from gdlx.solvers.mccfr import mccfr
from gdlx.tests.helpers import xla_flags

# Sequential, simultaneous, both combined, three players, and one player with chance.
GAMES = ("kuhn_poker", "goofspiel:cards=3", "simple_poker", "smallest:numbers=3,steps=1", "monty_hall")


@functools.cache
def load_tree(game: str) -> game_tree.GameTree:
    return game_spec.unroll_game(game_spec.GameSpec(game), keep_edges=True)


def random_tables(form: sampling_form.SamplingForm, rng: np.random.Generator) -> mccfr.Tables:
    """Random policies in which no action is unlikely."""
    tables = []
    for uniform in form.uniform_by_player:
        raw = np.where(np.asarray(uniform) > 0, rng.uniform(0.2, 1, uniform.shape), 0)
        tables.append(jnp.asarray(raw / raw.sum(axis=0), uniform.dtype))
    return tuple(tables)


def policies_from_tables(tree: game_tree.GameTree, tables: Any) -> tabular_policies.Policies:
    policies = []
    for player, table in zip(tree.players, tables, strict=True):
        policy = np.ones(player.sequences)
        for number in range(player.sets):
            first, end = player.first[number], player.first[number + 1]
            policy[first:end] = np.asarray(table)[: end - first, number]
        policies.append(policy)
    return tuple(policies)


def run_with_devices(script: str, count: int) -> list[float]:
    """Runs a script with so many devices, and returns the numbers that it prints after that of its devices."""
    environment = xla_flags.environment_with_devices(count)
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=True)
    devices, *numbers = map(float, ran.stdout.split())
    assert devices == count
    return numbers


def assert_same_leaves(first: Any, second: Any) -> None:
    """Two states hold the same arrays, random keys included."""
    for old, new in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True):
        is_key = jnp.issubdtype(old.dtype, jax.dtypes.prng_key)
        was, now = (np.asarray(jax.random.key_data(x) if is_key else x) for x in (old, new))
        np.testing.assert_array_equal(was, now)
