"""Training divided among eight devices, beside the same on one."""

import pathlib

import numpy as np
import pytest

from gdlx.tests.helpers import samples

# The state after three iterations, in a process of its own: how many devices there are is settled when jax starts. Then
# again, with the last one made from a checkpoint of the first two, which may be of a process with other devices.
_AFTER = """
import jax, numpy as np, pathlib
from gdlx.nets import checkpoints
from gdlx.nets.models import sharding
state = learner.init(jax.random.key(0))
before = [x.sharding for x in jax.tree.leaves(state)]
iterate = jax.jit(learner.iterate).lower(state).compile()
for _ in range(2):
    state, _ = iterate(state)
is_divided = "all-reduce" in iterate.as_text()
stays = before == [x.sharding for x in jax.tree.leaves(state)]
folder = pathlib.Path(FOLDER)
if not checkpoints.has_state(folder):
    checkpoints.write_state(folder, 2, 0.0, state)
kept, *_ = checkpoints.read_state(folder, jax.eval_shape(learner.init, jax.random.key(0)))
found = [learnt(iterate(x)[0]) for x in (state, sharding.replicate(kept))]
numbers = [np.concatenate([np.ravel(x) for x in jax.tree.leaves(each)])[:4000:7] for each in found]
print(len(jax.devices()), int(is_divided), int(stays), *np.concatenate(numbers))
"""

_SELF_PLAY = """
from gdlx.nets.models import encoders
from gdlx.nets.learners import self_play
from gdlx.players.matches import arenas
settings = self_play.Settings(games=32, steps=4, capacity=1024, batch=64, updates=2, widths=(16, 16))
learner = self_play.make(encoders.Encoder(arenas.make_arena("kuhn_poker").env, 6), settings)
learnt = lambda state: state.parameters
"""

_DEEP_CFR = """
import gdlx
from gdlx.envs import game_spec
from gdlx.nets.learners import deep_cfr
from gdlx.nets.models import encoders
from gdlx.solvers import tasks
task = tasks.make_tree_task(game_spec.GameSpec("kuhn_poker"), keep_edges=True)
settings = deep_cfr.Settings(traversals=16, capacity=1024, steps=8, policy_steps=8, batch=32, widths=(16,))
learner = deep_cfr.make(encoders.Encoder(gdlx.make("kuhn_poker"), 5), settings, task)
learnt = lambda state: (state.advantage_train_states.params, learner.policy_params(state))
"""

_SUPERVISED = """
from gdlx.nets.learners import supervised
settings = supervised.Settings(depth=3, batch=16, solving=20, capacity=64, steps=8, minibatch=16)
learner = supervised.make_for_game("kuhn_poker", settings)
learnt = lambda state: (state.values, state.policy)
"""


@pytest.mark.parametrize(
    "learner",
    [
        pytest.param(_SELF_PLAY, id="self-play", marks=pytest.mark.slow),
        pytest.param(_DEEP_CFR, id="deep-cfr"),
        pytest.param(_SUPERVISED, id="supervised", marks=pytest.mark.slow),
    ],
)
def test_eight_devices_train_as_one_does(learner: str, tmp_path: pathlib.Path) -> None:
    script = learner + _AFTER.replace("FOLDER", repr(str(tmp_path)))
    alone_divided, _, *alone = samples.run_with_devices(script, 1)
    is_divided, stays, *many = samples.run_with_devices(script, 8)  # and from what the one has written
    assert (is_divided, alone_divided) == (1, 0)
    assert stays  # on the same devices, so that nothing is compiled again
    assert np.abs(alone).max() > 0
    np.testing.assert_allclose(many, alone, rtol=1e-3, atol=1e-4)
    half = len(alone) // 2
    np.testing.assert_array_equal(alone[:half], alone[half:])
