"""Agents that play policies from files: result folders of `gdlx solve`, and policy tables."""

import csv
import dataclasses
import io
import json
import pathlib
from typing import Any

from gdlx.envs import trees, unroll
from gdlx.players import agent, table_agent
from gdlx.propnet import errors, untrusted
from gdlx.solvers import exports, problems, results, solve, table_policy


@dataclasses.dataclass(frozen=True)
class SavedSolution(table_agent.TableAgent):
    """Plays the average policies of a result."""

    folder: str

    def sources(self) -> list[pathlib.Path]:
        return [pathlib.Path(self.folder) / results.POLICY]

    def learn(self, arena: agent.Arena) -> table_policy.TablePolicy:
        folder, net = pathlib.Path(self.folder), arena.env.net
        config = results.read_config(folder)
        if solve.uses_table(config.algorithm):
            self._require_rules(arena, config.digest, problems.rules_digest(net))
            return results.read_table_policy(folder, arena.env.num_actions)
        tree = trees.unrolled(config.game, net=net)
        self._require_rules(arena, config.digest, problems.tree_digest(tree))
        return table_policy.of_policies(results.read_policy(folder, tree), arena.env, tree)

    def _require_rules(self, arena: agent.Arena, solved: str, played: str) -> None:
        if solved != played:
            raise agent.WrongAgent(
                f"{self.folder} was solved with other rules than {arena.game.spec} has now; "
                f"solve this game, or play that one"
            )


@dataclasses.dataclass(frozen=True)
class PolicyFile(table_agent.TableAgent):
    """Plays a policy table; information sets that are not in it have uniform policies."""

    file: str

    def sources(self) -> list[pathlib.Path]:
        return [pathlib.Path(self.file)]

    def learn(self, arena: agent.Arena) -> table_policy.TablePolicy:
        path = pathlib.Path(self.file)
        try:
            text = untrusted.read_bounded(path, untrusted.MAX_BYTES).decode("utf-8")
            is_csv = path.suffix.lower() == ".csv"
            table = None if is_csv else json.loads(text)
            # The last step that the table has something on is as far as the game is unrolled.
            last = _last_step(csv.DictReader(io.StringIO(text)) if is_csv else _entries(table))
            depth = None if last is None else last + 1
            tree = unroll.unroll(arena.env.net, "goal", depth=depth, goal_conflict="max")
            if is_csv:
                policies = exports.from_csv(tree, text, partial=True)
            else:
                policies = exports.from_json(tree, table, partial=True)
        except OSError as error:
            raise agent.WrongAgent(f"the policy table {self.file} cannot be read: {error.strerror}") from None
        except (ValueError, RecursionError, csv.Error) as error:
            what = "it is not text in UTF-8" if isinstance(error, UnicodeDecodeError) else _told(error)
            raise agent.WrongAgent(f"{self.file} is no policy of {arena.game.spec}: {what}") from None
        return table_policy.of_policies(policies, arena.env, tree)


def _told(error: Exception) -> str:
    return str(error) if isinstance(error, errors.UserError) else f"it cannot be read ({error})"


def _last_step(entries: Any) -> int | None:
    """The largest step; None where one is missing or no number, so that nothing is known of the last one."""
    last = 0
    for entry in entries:
        try:
            last = max(last, int(entry["step"]))
        except (KeyError, TypeError, ValueError):
            return None
    return last


def _entries(table: Any) -> list[Any]:
    """Those of a JSON table, whatever is wrong with it."""
    players = table.get("policy") if isinstance(table, dict) else None
    lists = players.values() if isinstance(players, dict) else ()
    return [entry for sets in lists if isinstance(sets, list) for entry in sets] or [None]
