"""States of trainings that earlier versions wrote: games in progress had other arrays then, and start again."""

from collections.abc import Mapping
from typing import Any

import jax

Kinds = Mapping[str, Any]  # shape and dtype of every leaf that is not empty, by its number


def match_leaves(stored: Kinds, expected: Kinds, like: Any) -> dict[str, str] | None:
    """Finds the leaves of a state among those that an earlier version wrote.

    Args:
      stored: leaves in the file.
      expected: leaves of `like`.
      like: a state; its field `games`, if it has one, may differ from the one stored.

    Returns:
      The number in the file of every leaf outside of `games`, or None if other leaves differ, too.

    >>> from typing import NamedTuple
    >>> class State(NamedTuple):
    ...     parameters: object
    ...     games: object
    ...     iteration: object
    >>> like = State(0, {"words": 0}, 0)
    >>> match_leaves({"0": "a", "1": "b", "2": "c", "3": "d"}, {"0": "a", "1": "x", "2": "d"}, like)
    {'0': '0', '2': '3'}
    >>> match_leaves({"0": "z", "1": "b", "2": "c", "3": "d"}, {"0": "a", "1": "x", "2": "d"}, like)
    """
    paths = [path for path, _ in jax.tree_util.tree_flatten_with_path(like)[0]]
    of_games = [number for number, path in enumerate(paths) if getattr(path[0], "name", None) == "games"]
    if not of_games or not stored:
        return None
    added = max(map(int, stored)) + 1 - len(paths)
    matched = {
        name: str(int(name) + (added if int(name) > of_games[-1] else 0))
        for name in expected
        if int(name) not in of_games
    }
    is_same = all(stored.get(number) == expected[name] for name, number in matched.items())
    return matched if is_same else None
