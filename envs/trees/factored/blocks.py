"""Blocks: nodes of a game tree that stand for every combination of what the players keep to themselves.

A block is a world, a weight, and for every player a set of members; a member is an information set together with the
private registers that go with it. Given what happened in the world, what the players tried in private is independent,
so every combination of members occurs: a block with sets of 20 and 30 members is 600 histories.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gdlx.envs.trees.factored import private_registers, ragged
from gdlx.propnet.circuits import propnet
from gdlx.propnet.simulate import machine

Bools = npt.NDArray[np.bool_]
Longs = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Side(NamedTuple):
    """What one player may know and hold at a level. Axes: M members, Q private states, r registers of the player."""

    infoset: Longs  # [M] information set, numbered within the level
    private: Longs  # [M] column of `private_states`
    private_states: Bools  # [r, Q]
    sets: ragged.Ragged  # distinct sets of members


class Level(NamedTuple):
    """The blocks after the same number of joint actions. Axes: B blocks, W worlds, P players."""

    worlds: Bools  # [registers of the world, W]
    world: Longs  # [B]
    sets: list[Longs]  # P x [B] rows of the players' `Side.sets`
    weight: Floats  # [B] chance reach of each history in the block
    histories: Floats  # [B] histories that were merged, for each combination of members
    sides: list[Side]

    @property
    def sizes(self) -> list[Floats]:
        """P x [B] members of every block."""
        return [side.sets.lengths[sets].astype(float) for side, sets in zip(self.sides, self.sets, strict=True)]


class FactoredGame(NamedTuple):
    """A propnet whose registers are divided into those of the world and those of each player."""

    propnet: propnet.PropNet
    machine: machine.StateMachine
    players: list[int]  # roles
    chance: list[int]  # roles
    world: Longs  # registers
    private: list[Longs]  # P x registers

    @property
    def sizes(self) -> list[int]:
        """Moves of every role."""
        return [len(role.moves) for role in self.propnet.roles]

    def states(self, worlds: Bools, player: int | None = None, private: Bools | None = None) -> Bools:
        """Whole states, of which everything that other players keep to themselves is left false."""
        states = np.zeros((len(self.propnet.initial), worlds.shape[1]), np.bool_)
        states[self.world] = worlds
        if player is not None and private is not None:
            states[self.private[player]] = private
        return states

    def legal(self, states: Bools, role: int) -> Bools:
        """The legal moves [moves, states] of one role."""
        rows: Bools = machine.split_rows(self.machine.legal(states), self.sizes)[role]
        return rows


def divide_registers(propnet: propnet.PropNet, permutations: Sequence[Longs] = ()) -> FactoredGame:
    """Finds out which registers are private; those that symmetries exchange are so for the same player."""
    owners = private_registers.find_owners(propnet, permutations)
    players = [n for n, role in enumerate(propnet.roles) if not role.is_random]
    return FactoredGame(
        propnet,
        machine.for_propnet(propnet),
        players,
        [n for n, role in enumerate(propnet.roles) if role.is_random],
        np.flatnonzero(owners == private_registers.WORLD),
        [np.flatnonzero(owners == role) for role in players],
    )
