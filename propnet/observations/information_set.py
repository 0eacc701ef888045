"""The information set of a player in a position: how many histories agree, exactly where possible, and examples."""

import math
import time
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from gdlx.propnet.circuits import propnet
from gdlx.propnet.common import deadlines, errors, limits, seeds
from gdlx.propnet.observations import (
    choices,
    guided_sampling,
    history_enumeration,
    plausible_moves,
    positions,
    sat_histories,
    unit_propagation,
)

Way = Literal["auto", "enumerate", "guided", "sat"]


class ImpossibleObservationsError(errors.UserError, ValueError):
    """Observations that no play can give."""


class Sizes(NamedTuple):
    """How large the circuit of the observations is, and what propagation leaves open. Axes: G choices."""

    gates: int
    open_gates: int
    inputs: int
    clauses: int
    choices: tuple[int, ...]  # [G] plausible moves
    forced: int  # moves that only one is plausible for, of all roles and joint actions


class InformationSet(NamedTuple):
    """What is known of an information set. Axes: N histories, T joint actions, R roles.

    Attributes:
      way: How it was found.
      histories: How many histories agree, exactly; None if that is not known.
      distinct: How many different ones were found.
      complete: Whether these are all.
      biased: Whether nothing is known of how they were selected.
      effective_sample_size: Of the weighted histories, equal ones together; NaN if it was not sampled.
      likelihood: Probability of the observations, given the player's own moves, if all others play uniformly.
      examples: int64[N, T, R] moves of some of them.
      sizes: Of the circuit.
      infer_seconds, seconds: Time of inferring what is plausible, and of finding the histories after that.
    """

    way: Way
    histories: int | None
    distinct: int
    complete: bool
    biased: bool
    effective_sample_size: float
    likelihood: float
    examples: npt.NDArray[np.int64]
    sizes: Sizes
    infer_seconds: float
    seconds: float


def infer(net: propnet.PropNet, position: positions.Position) -> plausible_moves.PlausibleMoves:
    """Returns what follows from the observations of a position.

    Raises:
      ImpossibleObservationsError: If propagation shows that no play gives them; it names the joint action.
    """
    step = 0
    try:
        plausible = plausible_moves.PlausibleMoves(net, position.player, position.first)
        for step, event in enumerate(position.events, 1):  # noqa: B007 - of the event that is impossible
            plausible.extend(event)
    except unit_propagation.ContradictionError:
        raise ImpossibleObservationsError(impossible_message(net, position, step)) from None
    return plausible


def impossible_message(net: propnet.PropNet, position: positions.Position, step: int) -> str:
    """Says that the observations after a joint action, from 1, are impossible; 0 is the initial state."""
    role = net.players[position.player]
    if not step:
        return f"{role.name} does not have these legal moves in the initial state of {net.name}"
    event = position.events[step - 1]
    percepts = ", ".join(role.percepts[number] for number in event.percepts) or "nothing"
    legal = ", ".join(role.moves[number] for number in event.legal) or "no move"
    return (
        f"no play of {net.name} gives what {role.name} observed in joint action {step}: it did "
        f"{role.moves[event.move]}, perceived {percepts}, and then may do {legal}; all before is possible"
    )


def find_information_set(
    net: propnet.PropNet,
    position: positions.Position,
    way: Way = "auto",
    *,
    size: int = 10_000,
    seconds: float = 30.0,
    seed: int = 0,
    examples: int = 3,
    listed: bool = False,
) -> InformationSet:
    """Counts or samples the histories that a player cannot distinguish from what was played.

    Args:
      net: The propnet.
      position: The position, as the player observes it.
      way: "enumerate" counts all, "guided" samples, "sat" asks a SAT solver; "auto" is the first that is possible.
      size: How many to sample.
      seconds: The limit on the time of counting, of which `auto` takes half, and of the SAT solver.
      seed: The seed of sampling.
      examples: How many histories to return.
      listed: List all, in `enumerate`, instead of merging those with the same future: then `distinct` is their number.

    Raises:
      ImpossibleObservationsError: If it is proved that none agrees.
      TooManyHistoriesError: If they are too many to be counted, with "enumerate".

    >>> from gdlx.propnet import games
    >>> phantom = games.compile_game("phantom_tictactoe")
    >>> position = positions.random_position(phantom, player=1, steps=6, seed=1)
    >>> found = find_information_set(phantom, position)
    >>> found.way, found.complete, len(found.examples)
    ('enumerate', True, 3)
    """
    begun = time.perf_counter()
    plausible = infer(net, position)
    left = choices.find_choices(plausible)
    inferred = time.perf_counter()
    random = np.random.default_rng(seeds.non_negative(seed))
    found = None
    if way in ("auto", "enumerate"):
        try:
            with deadlines.enforce(limits.Limits(seconds=seconds if way == "enumerate" or listed else seconds / 2)):
                found = _enumerate(left, way, examples, random, listed=listed)
        except deadlines.LimitReachedError:
            if way == "enumerate" or listed:
                raise errors.UserError(
                    f"the histories of {net.name} that agree were not all {'listed' if listed else 'counted'} within "
                    f"{seconds:g} s; allow more `seconds=`, or sample them"
                ) from None
    if found is None and way != "sat":
        found = _sample(left, size, examples, random)
        if found is None and way == "guided":
            raise errors.UserError(
                f"none of {size:,} guided samples agrees with all observations; take more of them, or `way='sat'`"
            )
    if found is None:
        found = _solve(left, size, examples, seconds, seed)
    if found.complete and not found.histories:
        step = sat_histories.first_impossible(
            lambda end: choices.find_choices(infer(net, position._replace(events=position.events[:end]))),
            0,
            len(position.events),
        )
        raise ImpossibleObservationsError(impossible_message(net, position, step))
    return found._replace(
        sizes=_sizes(plausible, left), infer_seconds=inferred - begun, seconds=time.perf_counter() - inferred
    )


_NO_SIZES = Sizes(0, 0, 0, 0, (), 0)


def _enumerate(
    left: choices.Choices, way: Way, examples: int, random: np.random.Generator, *, listed: bool
) -> InformationSet | None:
    """Counts all histories; None if they are too many, unless that was asked for."""
    if listed:
        number, total, codes = 0, 0.0, np.zeros((len(left.choices), 0), np.uint16)
        for batch in history_enumeration.list_histories(left):
            number += batch.codes.shape[1]
            total += float(np.exp(batch.log_probability).sum())
            codes = codes if codes.shape[1] else batch.codes[:, :examples]
        moves = history_enumeration.Histories(codes, np.zeros(0)).moves(left)
        return InformationSet("enumerate", number, number, True, False, math.nan, total, moves, _NO_SIZES, 0.0, 0.0)
    try:
        merged = history_enumeration.MergedHistories(left, max_lanes=2**20)
    except history_enumeration.TooManyHistoriesError:
        try:
            merged = history_enumeration.MergedHistories(left, keep=False)
        except history_enumeration.TooManyHistoriesError:
            if way == "enumerate":
                raise
            return None
        sampled = guided_sampling.sample_histories(left, 1_024, random).histories
        moves = history_enumeration.Histories(sampled.codes[:, :examples], sampled.log_probability[:examples]).moves(
            left
        )
    else:
        moves = (
            merged.sample(examples, random).moves(left) if merged.histories else np.zeros((0, *left.moves.shape), int)
        )
    number = merged.histories
    return InformationSet(
        "enumerate", number, number, True, False, math.nan, merged.likelihood, moves, _NO_SIZES, 0.0, 0.0
    )


def _sample(left: choices.Choices, size: int, examples: int, random: np.random.Generator) -> InformationSet | None:
    """Samples with guidance; None if nothing is left."""
    sample = guided_sampling.sample_histories(left, size, random)
    if not len(sample.weights):
        return None
    _, first, number = np.unique(sample.histories.codes, axis=1, return_index=True, return_inverse=True)
    weights = np.bincount(number.reshape(-1), sample.weights)
    shown = first[:examples]
    moves = history_enumeration.Histories(sample.histories.codes[:, shown], np.zeros(len(shown))).moves(left)
    ess = float(1 / np.square(weights).sum())
    likelihood = math.exp(sample.log_likelihood)
    return InformationSet("guided", None, len(first), False, False, ess, likelihood, moves, _NO_SIZES, 0.0, 0.0)


def _solve(left: choices.Choices, size: int, examples: int, seconds: float, seed: int) -> InformationSet:
    """Asks the SAT solver for as many histories as are to be sampled, or all if they are fewer."""
    result = sat_histories.find_histories(left, wanted=size + 1, seconds=seconds, seed=seed, random=True)
    number = result.histories.codes.shape[1]
    if not number and not result.complete:
        raise errors.UserError(
            f"the SAT solver found no history within its limit ({result.stopped}); sampling with guidance and merging "
            "found none either, or were not asked for. Allow more time"
        )
    moves = history_enumeration.Histories(result.histories.codes[:, :examples], np.zeros(0)).moves(left)
    exact = number if result.complete else None
    biased = not result.complete
    return InformationSet("sat", exact, number, result.complete, biased, math.nan, math.nan, moves, _NO_SIZES, 0.0, 0.0)


def _sizes(plausible: plausible_moves.PlausibleMoves, left: choices.Choices) -> Sizes:
    circuit = plausible.circuit
    inputs = len(circuit.inputs())
    return Sizes(
        gates=len(circuit.gates) - inputs,
        open_gates=sum(len(choice.gates) for choice in left.choices),
        inputs=inputs,
        clauses=sum(len(choice.clauses) for choice in left.choices),
        choices=tuple(len(choice.moves) for choice in left.choices),
        forced=int((left.moves >= 0).sum()),
    )
