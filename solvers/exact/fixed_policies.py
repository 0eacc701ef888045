"""Games in which some information sets are given: there everybody plays a policy that is fixed, elsewhere is solved.

Solving what is left finds an equilibrium of the rest of the game given how it was come to. That is an ordinary sequence
form: a set whose regrets are all taken for noise never learns, and regret matching without regrets gives what the form
calls uniform, which here is the given policy. A batch of given policies is a batch of games, and each may have other
sets given.
"""

import jax
import jax.numpy as jnp
import numpy as np

from gdlx.envs.trees import game_tree, sequence_form
from gdlx.solvers import algorithms, tabular_policies
from gdlx.solvers.exact import cfr, realization_plans

InfosetMask = tuple[realization_plans.Levels, ...]  # P x L x [w, n] bool

TREMBLE = 1e-3
_CFR_PLUS = algorithms.find("cfr+").settings


def infosets_before(
    tree: game_tree.GameTree, layouts: tuple[sequence_form.SequenceLayout, ...], steps: int
) -> InfosetMask:
    """The sets at which fewer than so many joint moves have been made."""
    found = []
    for player, own in zip(tree.players, layouts, strict=True):
        early = np.concatenate([[True], np.repeat(player.step < steps, np.diff(player.first))])
        found.append(tuple(map(sequence_form.to_device, tabular_policies.player_to_levels(own, early))))
    return tuple(found)


def add_tremble(policy: jax.Array, uniform: jax.Array, share: float = TREMBLE) -> jax.Array:
    """Policies [w, n, ..] that are uniform now and then.

    To be given: where others never come by what is given, there is nothing to learn from, and any policy would do; but
    somebody who comes there all the same should not find it.
    """
    return policy + share * (realization_plans.expand_like(uniform, policy) - policy)


def fix_policies(
    game: sequence_form.SequenceForm, given: tabular_policies.Profile, is_given: InfosetMask
) -> sequence_form.SequenceForm:
    """The game with the policies [w, n, ..] of the sets [w, n, ..] that are given; others' do not matter."""
    players = []
    for player, policy, here in zip(game.players, given, is_given, strict=True):
        uniform = tuple(map(_where, here, policy, player.uniform))
        # Elsewhere only what is no option is noise: sets that are hardly ever come to are to be solved as well.
        noise = [
            jnp.where(realization_plans.expand_like(jnp.isinf(rest), flag) | flag, jnp.inf, 0)
            for rest, flag in zip(player.regret_tolerance, here, strict=True)
        ]
        players.append(player._replace(uniform=uniform, regret_tolerance=tuple(noise)))
    return sequence_form.SequenceForm(tuple(players))


def _where(condition: jax.Array, yes: jax.Array, no: jax.Array) -> jax.Array:
    """With the batch axes of each at the end."""
    widest = max((condition, yes, no), key=lambda x: x.ndim)
    return jnp.where(
        realization_plans.expand_like(condition, widest),
        realization_plans.expand_like(yes, widest),
        realization_plans.expand_like(no, widest),
    )


def solve_remaining(
    game: sequence_form.SequenceForm, given: tabular_policies.Profile, is_given: InfosetMask, iterations: int
) -> tabular_policies.Profile:
    """Average policies [w, n, ..] of so many iterations of CFR+, and the given ones where they are given."""
    fixed = fix_policies(game, given, is_given)
    start = tuple(tuple(map(jnp.zeros_like, levels)) for levels in given)

    state = cfr.init_from_regrets(fixed, start)
    state = jax.lax.fori_loop(0, iterations, lambda _, before: cfr_plus_step(fixed, before), state)
    return cfr.average_policies(fixed, state)


def cfr_plus_step(
    game: sequence_form.SequenceForm, state: cfr.CfrState, leaves: cfr.LeafValueFn | None = None
) -> cfr.CfrState:
    """An iteration of CFR+, in the precision that jax is set to."""
    settings = jax.tree.map(lambda x: jnp.asarray(x, jnp.result_type(float)), _CFR_PLUS)
    return cfr.step(game, state, settings, leaves=leaves)
