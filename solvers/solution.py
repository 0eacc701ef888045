"""Solution: policies found for a game, what they are worth, and how they were found."""

import dataclasses
import difflib
import functools
import re
from collections.abc import Mapping, Sequence
from typing import Any

from gdlx.envs.trees import game_tree
from gdlx.propnet.common import errors
from gdlx.solvers import tabular_policies
from gdlx.solvers.runs import driver


class UnknownHistoryError(errors.UserError, KeyError):
    """A player or a history that the game does not have."""

    def __str__(self) -> str:  # a KeyError shows its message in quotes
        return str(self.args[0])


@dataclasses.dataclass(frozen=True)
class Solution:
    """`policies[i][s]` is the probability of option s (a sequence number) of player i at its information set."""

    tree: game_tree.GameTree
    algorithm: str
    policies: tabular_policies.Policies
    metrics: tuple[driver.Metrics, ...]  # over the run, the last one of these policies
    config: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def value(self) -> tuple[float, ...]:
        """Expected payoff of every player."""
        return self.metrics[-1].value

    @property
    def goals(self) -> tuple[float, ...]:
        """Expected goal of every player."""
        return tuple(value + self.tree.offset for value in self.value)

    @property
    def improvements(self) -> tuple[float, ...]:
        """Best-response improvement of every player; () where they are not known."""
        return self.metrics[-1].improvements

    @property
    def nash_conv(self) -> float | None:
        """Sum of the improvements, in payoff units; None where they are not known."""
        return self.metrics[-1].nash_conv

    @property
    def exploitability(self) -> float | None:
        """NashConv / 2 in payoff units; None unless there are two players."""
        return self.metrics[-1].exploitability

    @property
    def iterations(self) -> int:
        return self.metrics[-1].iterations

    @property
    def seconds(self) -> float:
        return self.metrics[-1].seconds

    def player(self, name: str) -> int:
        """The number of a player."""
        names = [player.name for player in self.tree.players]
        if name not in names:
            raise UnknownHistoryError(f"there is no player {name!r}; the players are {', '.join(names)}")
        return names.index(name)

    def policy(self, player: str, history: str | Sequence[str] = ()) -> dict[str, float]:
        """The options of a player after what it has done and seen, with their probabilities.

        The history is a label of the policy table, `(dealt king); check; (opponent_did bet)`, or its parts.
        """
        number = self.player(player)
        decision = self.find_infoset(number, history)
        own = self.tree.players[number]
        chosen = self.policies[number][own.first[decision] : own.first[decision + 1]]
        return dict(zip(own.options(decision), chosen.tolist(), strict=True))

    def find_infoset(self, number: int, history: str | Sequence[str]) -> int:
        """The information set of a player that has a history."""
        own = self.tree.players[number]
        text = history if isinstance(history, str) else "; ".join(history)
        found = self._index[number].get(_parts(text), [])
        exact = [n for n in found if own.labels[n] == text]
        if len(exact or found) == 1:
            return (exact or found)[0]
        if found:
            listed = "; or ".join(repr(own.labels[n]) for n in found[:4])
            raise UnknownHistoryError(f"{len(found)} information sets of {own.name} read like this; choose {listed}")
        near = difflib.get_close_matches(text, own.labels[:20_000], n=3, cutoff=0.0) if own.sets else []
        raise UnknownHistoryError(
            f"{own.name} has no choice after {text or 'nothing'!r}"
            + (f"; the nearest of its {own.sets:,} information sets: " + " | ".join(near) if near else "")
        )

    @functools.cached_property
    def _index(self) -> list[dict[tuple[str, ...], list[int]]]:
        indices = []
        for player in self.tree.players:
            index: dict[tuple[str, ...], list[int]] = {}
            for number, label in enumerate(player.labels):
                index.setdefault(_parts(label), []).append(number)
            indices.append(index)
        return indices


def _parts(text: str) -> tuple[str, ...]:
    """What is between commas and semicolons; `start` is nothing."""
    parts = tuple(" ".join(part.split()) for part in re.split("[;,]", text) if part.strip())
    return () if parts == ("start",) else parts
