"""Policy and value networks: feature encoders, learners, checkpoints and evaluation.

May import `gdlx.solvers` and the packages below it.
"""

from typing import TYPE_CHECKING

from gdlx.propnet.common import lazy

if TYPE_CHECKING:
    from gdlx.nets.learners.deep_cfr import DeepCfr as DeepCfr
    from gdlx.nets.learners.learner_registry import TrainConfig as TrainConfig
    from gdlx.nets.learners.learner_registry import make_learner as make_learner
    from gdlx.nets.learners.protocol import Learner as Learner
    from gdlx.nets.learners.self_play import SelfPlay as SelfPlay
    from gdlx.nets.learners.supervised import Supervised as Supervised
    from gdlx.nets.models.encoders import Encoder as Encoder
    from gdlx.nets.models.networks import Network as Network
    from gdlx.nets.models.replay_buffers import ReplayBuffer as ReplayBuffer
    from gdlx.nets.training import TrainingRun as TrainingRun

_MODULES = {
    "DeepCfr": "gdlx.nets.learners.deep_cfr",
    "Encoder": "gdlx.nets.models.encoders",
    "Learner": "gdlx.nets.learners.protocol",
    "Network": "gdlx.nets.models.networks",
    "ReplayBuffer": "gdlx.nets.models.replay_buffers",
    "SelfPlay": "gdlx.nets.learners.self_play",
    "Supervised": "gdlx.nets.learners.supervised",
    "TrainConfig": "gdlx.nets.learners.learner_registry",
    "TrainingRun": "gdlx.nets.training",
    "make_learner": "gdlx.nets.learners.learner_registry",
}
__all__ = [
    "DeepCfr",
    "Encoder",
    "Learner",
    "Network",
    "ReplayBuffer",
    "SelfPlay",
    "Supervised",
    "TrainConfig",
    "TrainingRun",
    "make_learner",
]
__getattr__, __dir__ = lazy.attach(__name__, _MODULES)
