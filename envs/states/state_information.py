"""Whether every player always knows the state: proved from the propnet, refuted by play, or left to be checked."""

import dataclasses
from collections.abc import Iterator

import numpy as np

from gdlx.envs.states import transitions
from gdlx.propnet.checks import by_playing
from gdlx.propnet.circuits import aig, memo, propnet, sat
from gdlx.propnet.circuits.passes import invariants
from gdlx.propnet.simulate import joint_actions, random_play

_COPIES, _STEPS = 64, 64
_MAX_JOINT_ACTIONS = 2**16  # that are compared in search of a counterexample
_MAX_PROOF_GATES = 20_000  # of two copies of the game


@dataclasses.dataclass(frozen=True)
class StateInformation:
    """Whether a game is one of states: every player's percepts and its own move determine the next state.

    Attributes:
      known: whether all players always know the state. If so and not `proved`, it was only observed in random play,
        and building the graph of states checks it everywhere.
      proved: whether that is proved for all states, or refuted by `ambiguity`.
      unproved: indices of the players for whom it is not proved.
      ambiguity: two joint actions that some player cannot tell apart; None if none was found.
    """

    known: bool
    proved: bool
    unproved: tuple[int, ...] = ()
    ambiguity: transitions.Ambiguity | None = None


@memo.per_propnet
def infer_state_information(game: propnet.PropNet, seed: int = 0) -> StateInformation:
    """Decides whether every player always knows the state.

    By induction over the steps: the initial state is known, and if a player's percepts determine the next state from
    the state before and its own move, it knows the next one too. That is immediate for players who perceive all joint
    actions, as all do in GDL without `sees`; otherwise random play looks for a counterexample, and a SAT solver for a
    proof.

    >>> from gdlx.propnet import games
    >>> infer_state_information(games.compile_game("tictactoe"))
    StateInformation(known=True, proved=True, unproved=(), ambiguity=None)
    >>> infer_state_information(games.compile_game("kuhn_poker")).known
    False
    """
    uncertain = [n for n, role in enumerate(game.players) if not by_playing.sees_everything(game, role)]
    if not uncertain:
        return StateInformation(True, True)
    ambiguity = _search(game, uncertain, seed)
    if ambiguity is not None:
        return StateInformation(False, True, tuple(uncertain), ambiguity)
    unproved = tuple(player for player in uncertain if not _is_proved(game, player))
    return StateInformation(True, not unproved, unproved)


def _search(game: propnet.PropNet, players: list[int], seed: int) -> transitions.Ambiguity | None:
    """Compares the joint actions of states that random play visits."""
    sizes = [len(role.moves) for role in game.roles]
    budget = _MAX_JOINT_ACTIONS
    seen: set[bytes] = set()
    for number, step in enumerate(random_play.random_steps(game, _COPIES, seed)):
        if number >= _STEPS or budget <= 0:
            return None
        alive = np.flatnonzero(~step.terminal & ~step.unplayable)
        columns = []
        for column, bits in zip(alive.tolist(), np.packbits(step.state[:, alive], axis=0).T, strict=True):
            if (key := bits.tobytes()) not in seen:
                seen.add(key)
                count = joint_actions.count_joint_actions(step.legal[:, [column]], sizes)
                if count <= budget:
                    budget -= int(count)
                    columns.append(column)
        states = step.state[:, columns]
        for part in transitions.expand(game, states, step.legal[:, columns], percepts_of=players):
            if (ambiguity := transitions.find_ambiguity(game, states, part)) is not None:
                return ambiguity
    return None


def _is_proved(game: propnet.PropNet, player: int) -> bool:
    """Whether no state has two joint actions with the same move and percepts of a player and different next states."""
    if len(game.feedback) or 2 * game.gates > _MAX_PROOF_GATES:
        return False
    copies = _TwoCopies(game, player)
    lines = [
        *copies.joint_actions(),
        f":- {sat.literal_to_asp(copies.literals(game.terminal)[0])}.",
        *(f":- {pair}." for literal in game.players[player].sees.tolist() for pair in copies.differences(literal)),
        *(f"differ :- {pair}." for literal in game.next.tolist() for pair in copies.differences(literal)),
        ":- not differ.",
        *invariants.to_asp(invariants.find_invariants(game)),
    ]
    return sat.is_unsatisfiable([*sat.gates_to_asp(copies.circuit()), *lines])


class _TwoCopies:
    """Two copies of a game in one circuit, which share the state and the move of one player."""

    def __init__(self, game: propnet.PropNet, player: int) -> None:
        self._game = game
        self._role = [n for n, role in enumerate(game.roles) if not role.is_random][player]
        self._shift = sum(len(role.moves) for role in game.roles)  # from a move to that of the second copy
        self._builder = aig.Builder(len(game.initial) + 2 * self._shift)
        self._nodes = (self._copy(0), self._copy(self._shift))

    def _copy(self, shift: int) -> list[aig.Literal]:
        """The literal of every node of a copy."""
        game = self._game
        circuit = game.as_circuit()
        first = game.first_move_node(self._role)
        shared = {*range(len(game.initial) + 1), *range(first, first + len(game.roles[self._role].moves))}
        nodes = [2 * (node if node in shared else node + shift) for node in range(circuit.inputs + 1)]
        for gate in circuit.gates:
            nodes.append(self._builder.conjunction([nodes[lit >> 1] ^ (lit & 1) for lit in gate]))
        return nodes

    def literals(self, literal: aig.Literal) -> tuple[aig.Literal, aig.Literal]:
        """A literal of the game in both copies."""
        first, second = (nodes[literal >> 1] ^ (literal & 1) for nodes in self._nodes)
        return first, second

    def differences(self, literal: aig.Literal) -> list[str]:
        """Bodies of rules, one of which holds if a literal has different values in the copies."""
        first, second = self.literals(literal)
        if first == second:
            return []
        return [f"{sat.literal_to_asp(first ^ flip)}, {sat.literal_to_asp(second ^ flip ^ 1)}" for flip in (0, 1)]

    def joint_actions(self) -> Iterator[str]:
        """Rules by which every role makes one legal move in each copy."""
        if self._builder.inputs:
            yield f"{{n(1..{self._builder.inputs})}}."
        for number, role in enumerate(self._game.roles):
            for shift in (0,) if number == self._role else (0, self._shift):
                start = self._game.first_move_node(number) + shift
                yield f"1 {{n({start}..{start + len(role.moves) - 1})}} 1."
                for move, literal in enumerate(role.legal.tolist()):  # functions of the state, equal in both copies
                    yield f":- n({start + move}), {sat.literal_to_asp(self.literals(literal)[0] ^ 1)}."

    def circuit(self) -> aig.Circuit:
        return aig.Circuit(self._builder.inputs, tuple(self._builder.gates), ())
