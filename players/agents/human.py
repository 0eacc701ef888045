"""A person at the terminal, who reads what happened and types moves."""

import dataclasses
import difflib
from typing import TYPE_CHECKING

from gdlx.envs.views import history
from gdlx.players.agents import agent
from gdlx.propnet.common import printable

if TYPE_CHECKING:
    import rich.console

_LEAVE = ("quit", "exit", "q")


@dataclasses.dataclass(frozen=True)
class HumanAgent:
    """A person at the terminal. Runs in the main thread, without clocks; has no options."""

    name: str = "human"
    untimed: bool = dataclasses.field(default=True, init=False)

    def start_match(self, context: agent.PlayerContext, clock: agent.Clock) -> "HumanPlayer":
        del clock
        import rich.console

        # stdout is for results only.
        terminal = rich.console.Console(stderr=True, highlight=False, markup=False)
        role = context.arena.env.players[context.player]
        others = ", ".join(name for name in context.arena.env.players if name != role)
        introduction = f"You are {role} in {context.arena.env.name}{f', with {others}' if others else ''}."
        terminal.print(printable.printable(introduction))
        return HumanPlayer(terminal)


@dataclasses.dataclass
class HumanPlayer:
    """Prints new events and asks for a move."""

    terminal: "rich.console.Console"
    shown_steps: int = 0  # joint actions that have been printed

    def choose(self, view: history.ActionObservationHistory, clock: agent.Clock) -> int:
        del clock
        for number, event in enumerate(view.events[self.shown_steps :], self.shown_steps + 1):
            self.terminal.print(printable.printable(f"{number:>3}. {in_words(view, event)}"))
        self.shown_steps = view.step
        moves = view.game.net.players[view.player].moves
        names = [moves[number] for number in view.legal]
        for number, name in enumerate(names, 1):
            self.terminal.print(printable.printable(f"  [{number}] {name}"))
        while True:
            typed = self._read_line()
            choice = parse_move(typed, names)
            if choice is not None:
                return view.legal[choice]
            near = difflib.get_close_matches(typed, names, n=1)
            self.terminal.print(
                f"'{typed}' is not a legal move{f' (is it {near[0]}?)' if near else ''}: type its number "
                f"from 1 to {len(names)}, or the move itself, or quit"
            )

    def _read_line(self) -> str:
        try:
            typed = " ".join(self.terminal.input("your move> ").split())
        except EOFError:
            self.terminal.print()  # ends the line of the prompt
            raise agent.PlayerQuitError from None
        if typed.lower() in _LEAVE:
            raise agent.PlayerQuitError
        return typed


def in_words(view: history.ActionObservationHistory, event: history.Event) -> str:
    """The player's move and its percepts after it, in words."""
    move, seen = view.event_names(event)
    return f"you: {move}" + (f", and you see {' '.join(seen)}" if seen else "")


def parse_move(typed: str, names: list[str]) -> int | None:
    """The index of the move that was typed: by its text, with or without outer brackets, or its number from 1.

    >>> parse_move("2", ["bet", "check"]), parse_move("mark 1 1", ["(mark 1 1)"]), parse_move("fold", ["bet", "check"])
    (1, 0, None)
    """
    for text in (typed, f"({typed})"):
        if text in names:
            return names.index(text)
    if typed.isascii() and typed.isdigit() and 1 <= int(typed) <= len(names):
        return int(typed) - 1
    return None
