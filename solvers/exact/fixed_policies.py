"""Games in which the policies of some information sets are fixed, and those of the others are solved.

The solution is an equilibrium of the rest of the game, conditional on the fixed policies. The game is an ordinary
sequence form: an information set with infinite regret tolerance never updates its regrets, and regret matching without
regrets returns the form's `uniform`, which here is the fixed policy. A batch of fixed policies is a batch of games, and
each may fix other information sets.
"""

import jax
import jax.numpy as jnp
import numpy as np

from gdlx.envs.trees import device_arrays, game_tree, sequence_form
from gdlx.solvers import algorithms, tabular_policies
from gdlx.solvers.exact import cfr, realization_plans

InfosetMask = tuple[realization_plans.Levels, ...]  # P x L x [w, n] bool

TREMBLE = 1e-3
_CFR_PLUS = algorithms.find("cfr+").settings


def infosets_before(
    tree: game_tree.GameTree, layouts: tuple[sequence_form.SequenceLayout, ...], steps: int
) -> InfosetMask:
    """Returns a mask of the information sets before time step `steps`."""
    masks = []
    for player, layout in zip(tree.players, layouts, strict=True):
        early = np.concatenate([[True], np.repeat(player.step < steps, np.diff(player.first))])
        masks.append(tuple(map(device_arrays.to_device, tabular_policies.player_to_levels(layout, early))))
    return tuple(masks)


def add_tremble(policy: jax.Array, uniform: jax.Array, share: float = TREMBLE) -> jax.Array:
    """Mix policies [w, n, ..] with the uniform policy.

    Apply it to policies before they are fixed: in subgames that fixed policies never reach there are no regrets, and
    any policy would remain. With a tremble these are solved too, for opponents that reach them nevertheless.
    """
    return policy + share * (realization_plans.expand_like(uniform, policy) - policy)


def fix_policies(
    game: sequence_form.SequenceForm, given: tabular_policies.Profile, is_given: InfosetMask
) -> sequence_form.SequenceForm:
    """Fix the policies [w, n, ..] of the information sets in the mask `is_given` [w, n, ..]; ignore the others."""
    players = []
    for player, policy, is_fixed in zip(game.players, given, is_given, strict=True):
        uniform = tuple(map(_where, is_fixed, policy, player.uniform))
        # Elsewhere the tolerance is 0, so that information sets of low reach are solved too; padding keeps infinity.
        tolerance = [
            jnp.where(realization_plans.expand_like(jnp.isinf(before), fixed) | fixed, jnp.inf, 0)
            for before, fixed in zip(player.regret_tolerance, is_fixed, strict=True)
        ]
        players.append(player._replace(uniform=uniform, regret_tolerance=tuple(tolerance)))
    return sequence_form.SequenceForm(tuple(players))


def _where(condition: jax.Array, yes: jax.Array, no: jax.Array) -> jax.Array:
    """`jnp.where` of arrays with batch axes at the end."""
    widest = max((condition, yes, no), key=lambda x: x.ndim)
    return jnp.where(
        realization_plans.expand_like(condition, widest),
        realization_plans.expand_like(yes, widest),
        realization_plans.expand_like(no, widest),
    )


def solve_remaining(
    game: sequence_form.SequenceForm, given: tabular_policies.Profile, is_given: InfosetMask, iterations: int
) -> tabular_policies.Profile:
    """Returns the average policies [w, n, ..] of so many iterations of CFR+; the fixed ones are as passed."""
    fixed = fix_policies(game, given, is_given)
    start = tuple(tuple(map(jnp.zeros_like, levels)) for levels in given)

    state = cfr.init_from_regrets(fixed, start)
    state = jax.lax.fori_loop(0, iterations, lambda _, before: cfr_plus_step(fixed, before), state)
    return cfr.average_policies(fixed, state)


def cfr_plus_step(
    game: sequence_form.SequenceForm, state: cfr.CfrState, leaves: cfr.LeafValueFn | None = None
) -> cfr.CfrState:
    """Runs an iteration of CFR+, in the default precision of jax."""
    settings = jax.tree.map(lambda x: jnp.asarray(x, jnp.result_type(float)), _CFR_PLUS)
    return cfr.step(game, state, settings, leaves=leaves)
