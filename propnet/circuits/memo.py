"""What is computed from a propnet once and kept with it, for as long as the propnet lives."""

import functools
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

from gdlx.propnet.circuits import propnet

P = ParamSpec("P")
R = TypeVar("R")


def per_propnet(
    function: Callable[Concatenate[propnet.PropNet, P], R],
) -> Callable[Concatenate[propnet.PropNet, P], R]:
    """A function of a propnet, and of hashable arguments, that is called once for each of them.

    Results are kept on the propnet object, not in a table of weak references: most of them hold the propnet
    themselves, which would keep it alive. A propnet made by dataclasses.replace starts with none.
    """

    @functools.wraps(function)
    def memoised(net: propnet.PropNet, /, *args: P.args, **kwargs: P.kwargs) -> R:
        results: dict[Any, R] = vars(net).setdefault("_memo", {})
        key = (function, args, tuple(sorted(kwargs.items())))
        if key not in results:
            results[key] = function(net, *args, **kwargs)
        return results[key]

    return memoised
