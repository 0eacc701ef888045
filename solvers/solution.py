"""Solution: the policies that a solver computed for a game, with their metrics and the config of the run."""

import dataclasses
import functools
import html
import os
import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gdlx.envs.trees import game_tree
from gdlx.propnet.common import errors
from gdlx.propnet.common.text import suggestions
from gdlx.solvers import tabular_policies
from gdlx.solvers.mccfr import table_policy
from gdlx.solvers.runs import driver, policy_tables, result_folder

_SHOWN_INFOSETS = 10  # of each player, in notebooks


class UnknownHistoryError(errors.UserError, KeyError):
    """A player or a history that the game does not have."""

    def __str__(self) -> str:  # a KeyError shows its message in quotes
        return str(self.args[0])


@dataclasses.dataclass(frozen=True, eq=False)
class Solution:
    """Policies of all players of an unrolled game.

    `policies[i][s]` is the probability of sequence s of player i: of its last action, at the information set where the
    player takes it. `policy` looks probabilities up by history.

    >>> import gdlx
    >>> solution = gdlx.solve("biased_rps", "lp")
    >>> solution.policy("player1")
    {'paper': 0.625, 'rock': 0.0625, 'scissors': 0.3125}
    """

    tree: game_tree.GameTree
    algorithm: str
    policies: tabular_policies.Policies
    metrics: tuple[driver.Metrics, ...]  # over the run; the last entry belongs to these policies
    config: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # of the run, as in config.json
    table: table_policy.TablePolicy | None = None  # the same policies in a hash table, of solvers that have one

    def __eq__(self, other: object) -> bool:
        """Whether the other has the same policies, of the same algorithm, at the same information sets."""
        if not isinstance(other, Solution):
            return NotImplemented
        return self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> tuple[Any, ...]:
        """What makes solutions equal; metrics do not, which contain measured times."""
        games = tuple((player.name, player.parent.tobytes(), player.action.tobytes()) for player in self.tree.players)
        return self.algorithm, games, tuple(np.asarray(policy, np.float64).tobytes() for policy in self.policies)

    def __repr__(self) -> str:
        return f"Solution({game_tree.one_line(self.tree.name)}, {self.algorithm}: {', '.join(self._summary())})"

    def _summary(self) -> list[str]:
        """The metrics of these policies, as short phrases."""
        if not self.metrics:
            return ["not measured"]
        last = self.metrics[-1]
        phrases = [f"{last.iterations:,} iterations"] if last.iterations else []
        if last.value:
            # In a two-player zero-sum game the second value is minus the first.
            shown = last.value[:1] if self.tree.zero_sum and len(last.value) == 2 else last.value
            name = "value" if len(shown) == 1 else "values"
            phrases.append(f"{name} {', '.join(_short(value) for value in shown)}")
        if last.improvements:
            name = "largest improvement" if last.exploitability is None else "exploitability"
            phrases.append(f"{name} {last.error:.2g}")
        return phrases or ["not measured"]

    def _repr_html_(self) -> str:
        """Tables for notebooks: a row for each player, then the first information sets of each."""
        last = self.metrics[-1] if self.metrics else driver.Metrics(0, 0.0, (), ())
        players = self.tree.players
        offset = self.tree.offset
        title = f"{self.tree.name}, {self.algorithm}: {', '.join(self._summary())}"
        parts = [
            f"<p>{_escape(title)}</p>",
            _html_table(
                ("player", "information sets", "payoff", "goal", "improvement"),
                [
                    (
                        player.name,
                        f"{player.sets:,}",
                        _short(last.value[number]) if last.value else "",
                        _short(last.value[number] + offset) if last.value else "",
                        f"{last.improvements[number]:.2g}" if last.improvements else "",
                    )
                    for number, player in enumerate(players)
                ],
            ),
        ]
        for player, policy in zip(players, self.policies, strict=True):
            shown = min(player.sets, _SHOWN_INFOSETS)
            if shown:
                rows = [(player.labels[n], _format_policy(player, policy, n)) for n in range(shown)]
                parts.append(f"<p>{_escape(player.name)}: {shown} of {player.sets:,} information sets</p>")
                parts.append(_html_table(("information set", "policy"), rows))
        return f"<div>{''.join(parts)}</div>"

    @property
    def value(self) -> tuple[float, ...]:
        """Expected payoff of every player; () where it is not known."""
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
        """Returns the index of a player.

        Raises:
          UnknownHistoryError: the game has no player of this name.
        """
        names = [player.name for player in self.tree.players]
        if name not in names:
            raise UnknownHistoryError(f"there is no player {name!r}; the players are {', '.join(names)}")
        return names.index(name)

    def policy(self, player: str, history: str | Sequence[str] = ()) -> dict[str, float]:
        """Returns the policy of a player at the information set that a history leads to.

        Args:
          player: the player's name.
          history: what the player has done and seen: a label of the policy table, such as
            `(dealt king); check; (opponent_did bet)`, or its parts.

        Returns:
          The probability of each legal action.

        Raises:
          UnknownHistoryError: there is no such player, or it has no choice after this history.
        """
        number = self.player(player)
        infoset = self.find_infoset(number, history)
        return _action_probabilities(self.tree.players[number], self.policies[number], infoset)

    def rows(self) -> list[dict[str, Any]]:
        """Returns the policies as a table: one row for each action of each information set.

        >>> import gdlx
        >>> gdlx.solve("biased_rps", "lp").rows()[0]
        {'player': 'player1', 'step': 0, 'information_set': 'start', 'action': 'paper', 'probability': 0.625}
        """
        return [row._asdict() for row in policy_tables.rows(self.tree, self.policies)]

    def save(self, folder: str | os.PathLike[str]) -> pathlib.Path:
        """Writes config, metrics and policies to a folder, for `gdlx.load_solution` and as an agent in matches.

        Args:
          folder: is created if it does not exist. An earlier solution in it is replaced.

        Returns:
          The path of the folder.

        Raises:
          ResultError: the folder holds anything else, such as a checkpoint, or the solution cannot be saved.

        >>> import tempfile
        >>> import gdlx
        >>> solution = gdlx.solve("biased_rps", "lp")
        >>> with tempfile.TemporaryDirectory() as name:
        ...     gdlx.load_solution(solution.save(f"{name}/biased")) == solution
        True
        """
        if not self.config:
            raise result_folder.ResultError("this solution has no `config`, so nobody could tell which game it is of")
        if self.config.get("modelled") is not None:
            raise result_folder.ResultError(
                "a response to a modelled opponent is saved together with the model, while it is solved: "
                "use `SolveRequest(results=..)`"
            )
        path = pathlib.Path(folder)
        result_folder.create_for_solution(path)
        if self.table is None:
            result_folder.write_policy(path, self.policies)
        else:
            result_folder.write_table_policy(path, self.table)
        result_folder.write_metrics(path, [player.name for player in self.tree.players], self.metrics)
        result_folder.write_config_json(path, self.config)
        return path

    def to_dataframe(self) -> Any:
        """Returns `rows()` as a pandas.DataFrame.

        Raises:
          MissingPackageError: pandas is not installed.
        """
        try:
            import pandas
        except ImportError:
            raise errors.MissingPackageError(
                "to_dataframe needs pandas, which is not installed: pip install pandas; rows() needs nothing"
            ) from None
        return pandas.DataFrame(self.rows())

    def find_infoset(self, number: int, history: str | Sequence[str]) -> int:
        """Returns the index of the information set that a history of player `number` leads to.

        Raises:
          UnknownHistoryError: no information set matches, or several do.
        """
        player = self.tree.players[number]
        text = history if isinstance(history, str) else "; ".join(history)
        matches = self._index[number].get(_parts(text), [])
        exact = [n for n in matches if player.labels[n] == text]
        if len(exact or matches) == 1:
            return (exact or matches)[0]
        if matches:
            listed = "; or ".join(repr(player.labels[n]) for n in matches[:4])
            raise UnknownHistoryError(f"{len(matches)} information sets of {player.name} match; choose {listed}")
        near = suggestions.closest_spellings(text, player.labels[:20_000], cutoff=0.0) if player.sets else []
        raise UnknownHistoryError(
            f"{player.name} has no choice after {text or 'nothing'!r}"
            + (f"; the nearest of its {player.sets:,} information sets: " + " | ".join(near) if near else "")
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


def _action_probabilities(player: game_tree.Player, policy: tabular_policies.Policy, infoset: int) -> dict[str, float]:
    chosen = policy[player.first[infoset] : player.first[infoset + 1]]
    return dict(zip(player.options(infoset), chosen.tolist(), strict=True))


def _format_policy(player: game_tree.Player, policy: tabular_policies.Policy, infoset: int) -> str:
    probabilities = _action_probabilities(player, policy, infoset)
    return ", ".join(f"{action}: {probability:.3f}" for action, probability in probabilities.items())


def _short(number: float) -> str:
    return f"{number:.3g}"


def _escape(text: str) -> str:
    return html.escape(text, quote=True)


def _html_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{_escape(cell)}</th>" for cell in header)
    body = "".join(f"<tr>{''.join(f'<td>{_escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _parts(text: str) -> tuple[str, ...]:
    """Splits a history at commas and semicolons; `start` is the empty history."""
    parts = tuple(" ".join(part.split()) for part in re.split("[;,]", text) if part.strip())
    return () if parts == ("start",) else parts
