"""What random play and proofs tell of a game before it is solved or played: found out once for every propnet."""

import dataclasses
import functools
import hashlib
import itertools

import numpy as np

from gdlx.envs import dynamics, payoffs
from gdlx.envs.trees import size_estimate
from gdlx.propnet.circuits import memo, propnet
from gdlx.propnet.simulate import random_play

# Names of their own, because some facts are called like the modules.
PayoffMode = payoffs.PayoffMode
Payoffs = payoffs.Payoffs
Dynamics = dynamics.Dynamics

_STEP_MARGIN = 4  # times the joint moves of the longest random match
_LENGTH_MATCHES, _LENGTH_STEPS = 1_024, 1_000
_DIGEST_MATCHES, _DIGEST_STEPS = 64, 64


@dataclasses.dataclass(frozen=True, eq=False)
class GameFacts:
    """Facts of one game. Each is computed when it is first asked for, and then kept.

    `seed` is that of the random play from which they are found; `digest` does not depend on it.
    """

    net: propnet.PropNet
    seed: int

    def payoffs(self, mode: PayoffMode = "auto") -> Payoffs:
        """How goals are turned into payoffs, and whether they sum to zero."""
        return payoffs.infer_payoffs(self.net, mode, self.seed)

    def payoff_range(self, mode: PayoffMode = "auto") -> tuple[float, float]:
        """The lowest and the highest payoff that a player's goal rules name."""
        named = [value - self.payoffs(mode).offset for role in self.net.players for value in role.goal_values]
        return min(named, default=0.0), max(named, default=0.0)

    @functools.cached_property
    def dynamics(self) -> Dynamics:
        """Whether the game is turn-taking."""
        return dynamics.infer_dynamics(self.net, self.seed)

    @functools.cached_property
    def longest_match(self) -> int:
        """Joint moves of the longest of a thousand random matches."""
        longest, length = 1, np.zeros(_LENGTH_MATCHES, np.int64)
        for number, step in enumerate(random_play.random_steps(self.net, len(length), self.seed)):
            ended = step.terminal | step.unplayable
            length = np.where(ended, 0, length + 1)
            longest = max(longest, int(length.max()))
            # Enough once everybody must have come to an end, or when matches seem never to end.
            if number >= 2 * longest or number >= _LENGTH_STEPS:
                break
        return longest

    @property
    def step_capacity(self) -> int:
        """Joint moves to make room for: several times those of the longest random match."""
        return _STEP_MARGIN * self.longest_match

    @functools.cached_property
    def digest(self) -> str:
        """Distinguishes games, by their names and by what happens in random play, however they are simplified."""
        digest = hashlib.sha256()
        for role in self.net.roles:
            digest.update(repr((role.name, role.moves, role.percepts, role.goal_values)).encode(errors="replace"))
        for step in itertools.islice(random_play.random_steps(self.net, _DIGEST_MATCHES, 0), _DIGEST_STEPS):
            for part in (step.legal, step.percepts, step.terminal, step.goals):
                digest.update(np.packbits(part).tobytes())
        return digest.hexdigest()[:16]

    def histories(self, enough: float = np.inf, depth: int | None = None) -> size_estimate.SizeEstimate:
        """An estimate of the number of histories, up to the first step with more than `enough` or to a depth."""
        return self._estimator.estimate(enough, depth)

    @functools.cached_property
    def _estimator(self) -> size_estimate.SizeEstimator:
        return size_estimate.SizeEstimator(self.net, self.seed)


@memo.per_propnet
def probe(net: propnet.PropNet, seed: int = 0) -> GameFacts:
    """The facts of a game; one object for every propnet and seed.

    >>> from gdlx.propnet import games
    >>> facts = probe(games.compile_game("kuhn_poker"))
    >>> facts.payoffs().zero_sum, facts.dynamics.turn_taking, facts.longest_match
    (True, True, 5)
    """
    return GameFacts(net, seed)
