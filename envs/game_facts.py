"""Facts of a game from random play and proofs, before it is solved or played; computed once per propnet."""

import dataclasses
import functools
import hashlib
import itertools

import numpy as np

from gdlx.envs import dynamics, payoffs
from gdlx.envs.trees.estimates import size_estimate
from gdlx.propnet.checks import by_playing, repetition
from gdlx.propnet.circuits import memo, propnet
from gdlx.propnet.simulate import random_play

# Aliases, because some facts have the names of the modules.
PayoffMode = payoffs.PayoffMode
Payoffs = payoffs.Payoffs
Dynamics = dynamics.Dynamics

_STEP_MARGIN = 4  # times the length of the longest random match
_LENGTH_MATCHES, _LENGTH_STEPS = 1_024, 1_000
_DIGEST_MATCHES, _DIGEST_STEPS = 64, 64


@dataclasses.dataclass(frozen=True, eq=False)
class GameFacts:
    """Facts of one game, each computed on first use and then cached. Use `probe` to get them.

    Attributes:
      propnet: the compiled rules.
      seed: of the random play behind the facts; `digest` does not depend on it.

    >>> import gdlx
    >>> facts = probe(gdlx.compile("kuhn_poker"))
    >>> facts.payoff_range(), facts.longest_match, facts.perfect_information
    ((-2.0, 2.0), 5, False)
    >>> facts
    GameFacts(kuhn_poker: seed 0, longest match 5, imperfect information)
    """

    propnet: propnet.PropNet
    seed: int

    def __repr__(self) -> str:
        facts = [f"seed {self.seed}"]  # and what is computed already: looking at an object plays no matches
        if "_lengths" in vars(self):
            facts.append(f"longest match {self.longest_match:,}" if self.ends else "no random match ended")
        if "perfect_information" in vars(self):
            facts.append(f"{'perfect' if self.perfect_information else 'imperfect'} information")
        return f"GameFacts({self.propnet.name}: {', '.join(facts)})"

    def payoffs(self, mode: PayoffMode = "auto") -> Payoffs:
        """How goal values become payoffs, and whether those sum to zero."""
        return payoffs.infer_payoffs(self.propnet, mode, self.seed)

    def payoff_range(self, mode: PayoffMode = "auto") -> tuple[float, float]:
        """The lowest and the highest payoff that the goal rules mention."""
        values = [value - self.payoffs(mode).offset for role in self.propnet.players for value in role.goal_values]
        return min(values, default=0.0), max(values, default=0.0)

    @functools.cached_property
    def dynamics(self) -> Dynamics:
        """Whether the game is turn-taking."""
        return dynamics.infer_dynamics(self.propnet, self.seed)

    @property
    def longest_match(self) -> int:
        """Joint actions in the longest of a thousand random matches."""
        return self._lengths[0]

    @property
    def ends(self) -> bool:
        """Whether any of a thousand random matches ended."""
        return self._lengths[1]

    @functools.cached_property
    def _lengths(self) -> tuple[int, bool]:
        longest, any_ended, length = 1, False, np.zeros(_LENGTH_MATCHES, np.int64)
        for number, step in enumerate(random_play.random_steps(self.propnet, len(length), self.seed)):
            ended = step.terminal | step.unplayable
            any_ended = any_ended or bool(ended.any())
            length = np.where(ended, 0, length + 1)
            longest = max(longest, int(length.max()))
            # Stop once every match must have ended, or if matches seem never to end.
            if number >= 2 * longest or number >= _LENGTH_STEPS:
                break
        return longest, any_ended

    @functools.cached_property
    def repetition(self) -> repetition.Repetition | None:
        """A state that a random match reached twice, which makes the tree infinite; None if none was found."""
        return repetition.find_repetition(self.propnet, self.seed)

    @functools.cached_property
    def perfect_information(self) -> bool:
        """Whether all players perceive every joint action, that of chance included."""
        return all(by_playing.sees_everything(self.propnet, role) for role in self.propnet.players)

    @property
    def step_capacity(self) -> int:
        """A limit on joint actions that matches rarely exceed: several times the longest random match."""
        return _STEP_MARGIN * self.longest_match

    @functools.cached_property
    def digest(self) -> str:
        """Identifies the game by its names and by random play, however its propnet was simplified."""
        digest = hashlib.sha256()
        for role in self.propnet.roles:
            digest.update(repr((role.name, role.moves, role.percepts, role.goal_values)).encode(errors="replace"))
        for step in itertools.islice(random_play.random_steps(self.propnet, _DIGEST_MATCHES, 0), _DIGEST_STEPS):
            for bits in (step.legal, step.percepts, step.terminal, step.goals):
                digest.update(np.packbits(bits).tobytes())
        return digest.hexdigest()[:16]

    def histories(self, enough: float = np.inf, depth: int | None = None) -> size_estimate.SizeEstimate:
        """Estimates the number of histories, up to the first step with more than `enough`, or to a depth."""
        return self._estimator.estimate(enough, depth)

    @functools.cached_property
    def _estimator(self) -> size_estimate.SizeEstimator:
        return size_estimate.SizeEstimator(self.propnet, self.seed)


@memo.per_propnet
def probe(propnet: propnet.PropNet, seed: int = 0) -> GameFacts:
    """Returns facts of a game that are proved or estimated by random play: payoffs, length, size.

    The same propnet and seed give the same object.

    Args:
      propnet: the compiled rules.
      seed: of the random play behind the facts.

    Returns:
      A `GameFacts`, which computes each fact on first use.

    >>> import gdlx
    >>> facts = probe(gdlx.compile("kuhn_poker"))
    >>> facts.payoffs().zero_sum, facts.dynamics.turn_taking, facts.longest_match
    (True, True, 5)
    """
    return GameFacts(propnet, seed)
