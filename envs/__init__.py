"""A compiled game as a batched environment: `make` and `Env`, packed random playouts, bridges to other libraries.

`unroll` goes from a game to a `GameTree`, and `sequence_form` from there to what solvers run on. May import
`gdlx.propnet`.
"""

from typing import TYPE_CHECKING

from gdlx.propnet.common import lazy

if TYPE_CHECKING:
    from gdlx.envs.env import Env as Env
    from gdlx.envs.env import State as State
    from gdlx.envs.game_facts import GameFacts as GameFacts
    from gdlx.envs.game_facts import probe as probe
    from gdlx.envs.game_spec import GameSpec as GameSpec
    from gdlx.envs.game_spec import unroll_game as unroll
    from gdlx.envs.game_spec import unroll_game as unroll_game
    from gdlx.envs.host import HostEnv as HostEnv
    from gdlx.envs.make_env import make as make
    from gdlx.envs.packed.batched_env import BatchedEnv as BatchedEnv
    from gdlx.envs.packed.batched_env import BatchedState as BatchedState
    from gdlx.envs.packed.batched_env import TimeStep as TimeStep
    from gdlx.envs.packed.packed_env import PackedEnv as PackedEnv
    from gdlx.envs.packed.packed_env import PackedState as PackedState
    from gdlx.envs.packed.sharded_playouts import PlayoutStats as PlayoutStats
    from gdlx.envs.packed.sharded_playouts import ShardedPlayout as ShardedPlayout
    from gdlx.envs.payoffs import Payoffs as Payoffs
    from gdlx.envs.trees.game_tree import GameTree as GameTree
    from gdlx.envs.trees.game_tree import TooLargeError as TooLargeError
    from gdlx.envs.trees.sampling_form import SamplingForm as SamplingForm
    from gdlx.envs.trees.sampling_form import sampling_form as sampling_form
    from gdlx.envs.trees.sequence_form import SequenceForm as SequenceForm
    from gdlx.envs.trees.sequence_form import sequence_form as sequence_form
    from gdlx.envs.views.history import ActionObservationHistory as ActionObservationHistory

_MODULES = {
    "TimeStep": "gdlx.envs.packed.batched_env",
    "BatchedState": "gdlx.envs.packed.batched_env",
    "BatchedEnv": "gdlx.envs.packed.batched_env",
    "ActionObservationHistory": "gdlx.envs.views.history",
    "Env": "gdlx.envs.env",
    "GameFacts": "gdlx.envs.game_facts",
    "GameSpec": "gdlx.envs.game_spec",
    "GameTree": "gdlx.envs.trees.game_tree",
    "HostEnv": "gdlx.envs.host",
    "PackedEnv": "gdlx.envs.packed.packed_env",
    "PackedState": "gdlx.envs.packed.packed_env",
    "Payoffs": "gdlx.envs.payoffs",
    "PlayoutStats": "gdlx.envs.packed.sharded_playouts",
    "SamplingForm": "gdlx.envs.trees.sampling_form",
    "SequenceForm": "gdlx.envs.trees.sequence_form",
    "ShardedPlayout": "gdlx.envs.packed.sharded_playouts",
    "State": "gdlx.envs.env",
    "TooLargeError": "gdlx.envs.trees.game_tree",
    "make": "gdlx.envs.make_env",
    "probe": "gdlx.envs.game_facts",
    "sampling_form": "gdlx.envs.trees.sampling_form",
    "sequence_form": "gdlx.envs.trees.sequence_form",
    "unroll": "gdlx.envs.game_spec:unroll_game",
    "unroll_game": "gdlx.envs.game_spec",
}
__all__ = [
    "ActionObservationHistory",
    "BatchedEnv",
    "BatchedState",
    "Env",
    "GameFacts",
    "GameSpec",
    "GameTree",
    "HostEnv",
    "PackedEnv",
    "PackedState",
    "Payoffs",
    "PlayoutStats",
    "SamplingForm",
    "SequenceForm",
    "ShardedPlayout",
    "State",
    "TimeStep",
    "TooLargeError",
    "make",
    "probe",
    "sampling_form",
    "sequence_form",
    "unroll",
    "unroll_game",
]
__getattr__, __dir__ = lazy.attach(__name__, _MODULES)
