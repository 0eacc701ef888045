"""Memoisation of functions of a propnet: results are stored on the propnet and live as long as it does."""

import functools
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

from gdlx.propnet.circuits import propnet

P = ParamSpec("P")
R = TypeVar("R")


def per_propnet(
    function: Callable[Concatenate[propnet.PropNet, P], R],
) -> Callable[Concatenate[propnet.PropNet, P], R]:
    """Decorates a function of a propnet and of hashable arguments, so that it is called once for each combination.

    Results are stored on the propnet object, not in a table of weak references: most of them refer to the propnet
    themselves, which would keep it alive. A propnet created by dataclasses.replace starts without results.
    """

    @functools.wraps(function)
    def memoised(propnet: propnet.PropNet, /, *args: P.args, **kwargs: P.kwargs) -> R:
        results: dict[Any, R] = vars(propnet).setdefault("_memo", {})
        key = (function, args, tuple(sorted(kwargs.items())))
        if key not in results:
            results[key] = function(propnet, *args, **kwargs)
        return results[key]

    return memoised
