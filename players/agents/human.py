"""A person at the terminal, who reads what happened and types moves."""

import dataclasses
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

from gdlx.envs.views import board, history, visible_state
from gdlx.players.agents import agent
from gdlx.propnet.common import errors
from gdlx.propnet.common.text import printable, suggestions

if TYPE_CHECKING:
    import rich.console

_LEAVE = ("quit", "exit", "q")
_ASK_HELP, _ASK_HINT, _ASK_HISTORY = ("?", "help", "h"), ("hint",), ("history",)
_HELP = """Type the number of a move, or the move itself, with or without its brackets.
  history  shows again what happened so far
  hint     shows the move that the agent you play against would make in your place
  quit     leaves the game"""
_HINT_SECONDS = 10.0


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
        terminal.print(printable.printable(f"{introduction} Type ? for help."))
        return HumanPlayer(terminal, self.adviser_in(context))

    def adviser_in(self, context: agent.PlayerContext) -> Callable[[], agent.Player] | None:
        """Returns a function that starts the match for an agent that gives hints; None if there is none."""
        del context
        return None


@dataclasses.dataclass(frozen=True)
class AdvisedHuman(HumanAgent):
    """A person who may ask an agent for hints, as in `gdlx play`."""

    adviser: agent.Agent | None = None

    def adviser_in(self, context: agent.PlayerContext) -> Callable[[], agent.Player] | None:
        if self.adviser is None:
            return None
        return functools.partial(self.adviser.start_match, context, agent.Clock(_HINT_SECONDS))


@dataclasses.dataclass
class HumanPlayer:
    """Prints new events, the board if everything is perceived, and asks for a move."""

    terminal: "rich.console.Console"
    adviser: Callable[[], agent.Player] | None = None  # starts the match for the agent that gives hints
    shown_steps: int = 0  # joint actions that have been printed

    def choose(self, view: history.ActionObservationHistory, clock: agent.Clock) -> int:
        del clock
        self._show_events(view, self.shown_steps)
        self.shown_steps = view.step
        moves = view.game.propnet.players[view.player].moves
        names = [moves[number] for number in view.legal]
        self._show_moves(names)
        while True:
            typed = self._read_line()
            if typed.lower() in _ASK_HELP:
                self._print(_HELP)
            elif typed.lower() in _ASK_HISTORY:
                self._show_events(view, 0)
                self._show_moves(names)
            elif typed.lower() in _ASK_HINT and "hint" not in names:
                self._print(self._hint(view, moves))
            elif (choice := parse_move(typed, names)) is not None:
                return view.legal[choice]
            else:
                self._print(
                    f"'{typed}' is not a legal move{suggestions.is_it(typed, names, most=1)}: type its number "
                    f"from 1 to {len(names)}, or the move itself, or ? for help, or quit"
                )

    def _print(self, text: str) -> None:
        self.terminal.print(printable.printable_lines(text))

    def _show_events(self, view: history.ActionObservationHistory, first: int) -> None:
        visible = visible_state.visible_state(view)
        for number, event in enumerate(view.events[first:], first):
            if visible is None:
                words = in_words(view, event, has_choice=len(_options(view, number)) > 1)
            else:
                words = ", ".join(f"{role}: {move}" for role, move in visible.choices[number].items())
            if words:
                self._print(f"{number + 1:>3}. {words}")
        if visible is not None:
            for line in board.draw_board(view.game.propnet.fluents, visible.fluents):
                self._print(f"  {line}")

    def _show_moves(self, names: list[str]) -> None:
        for number, name in enumerate(names, 1):
            self._print(f"  [{number}] {name}")

    def _hint(self, view: history.ActionObservationHistory, moves: tuple[str, ...]) -> str:
        if self.adviser is None:
            return "there is nobody to give a hint"
        try:
            number = self.adviser().choose(view, agent.Clock(_HINT_SECONDS))
        except errors.UserError as error:
            return f"no hint: {error}"
        return f"it would play {moves[number]}"

    def _read_line(self) -> str:
        try:
            typed = " ".join(self.terminal.input("your move> ").split())
        except EOFError:
            self.terminal.print()  # ends the line of the prompt
            raise agent.PlayerQuitError from None
        if typed.lower() in _LEAVE:
            raise agent.PlayerQuitError
        return typed


def in_words(view: history.ActionObservationHistory, event: history.Event, *, has_choice: bool = True) -> str:
    """The player's move, unless it was forced, and its percepts after it, in words; "" if there is nothing to say."""
    move, seen = view.event_names(event)
    parts = [f"you: {move}"] if has_choice else []
    if seen:
        parts.append(f"{'and ' if parts else ''}you see {' '.join(seen)}")
    return ", ".join(parts)


def _options(view: history.ActionObservationHistory, step: int) -> tuple[int, ...]:
    """The legal actions before a joint action."""
    return view.events[step - 1].legal if step else view.first


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
