"""Random small games: rules of every kind over few fluents and moves, mostly meaningless, but all valid GDL."""

import random
from collections.abc import Callable, Sequence

_VARIABLES = ("?x", "?y", "?z")
_AtomBuilder = Callable[[Callable[[], str]], str]  # from a source of arguments to the text of an atom


class _Writer:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.size = rng.randint(2, 4)
        self.roles = rng.choice([["r"], ["r", "s"], ["r", "random"], ["r", "s", "random"]])
        self.flags = [f"p{n}" for n in range(rng.randint(1, 4))]
        self.has_links = rng.random() < 0.6  # fluents for recursive rules
        self.lines: list[str] = []
        self.relations: list[_AtomBuilder] = []  # that later rules may use, so that negation is stratified

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def number(self) -> str:
        return str(self.rng.randrange(self.size))

    def flag(self) -> str:
        return self.rng.choice(self.flags)

    def rule(self, head: str, body: Sequence[str]) -> None:
        self.lines.append(f"(<= {head} {' '.join(body)})" if body else head)

    def positive(self) -> str:
        def argument() -> str:
            return self.rng.choice(_VARIABLES) if self.chance(0.8) else self.number()

        makers: list[_AtomBuilder] = [
            lambda _: f"(true {self.flag()})",
            lambda given: f"(true (at {given()}))",
            lambda given: f"(e {given()} {given()})",
            *self.relations,
        ]
        return self.rng.choice(makers)(argument)

    def negative(self, bound: Sequence[str]) -> str:
        def argument() -> str:
            return self.rng.choice(bound) if bound and self.chance(0.8) else self.number()

        makers: list[_AtomBuilder] = [
            lambda _: f"(not (true {self.flag()}))",
            lambda given: f"(not (true (at {given()})))",
            lambda given: f"(not (e {given()} {given()}))",
            lambda given: f"(distinct {given()} {given()})",
            *((lambda given, maker=maker: f"(not {maker(given)})") for maker in self.relations),
        ]
        return self.rng.choice(makers)(argument)

    def body(self, needed: Sequence[str] = (), given: Sequence[str] = ()) -> list[str]:
        """Literals in any order, in which all variables are bound, and also the `needed` ones."""
        literals = [*given, *(self.positive() for _ in range(self.rng.randint(0, 3)))]
        bound = [name for name in _VARIABLES if any(name in literal for literal in literals)]
        literals += [f"(n {name})" for name in needed if name not in bound]
        bound += [name for name in needed if name not in bound]
        literals += [self.negative(bound) for _ in range(self.rng.randint(0, 2))]
        self.rng.shuffle(literals)
        if len(literals) > 1 and self.chance(0.15):
            first, second, *rest = literals
            literals = [f"(or {first} (and {second} {first}))", second, *rest]
        return literals

    def does(self) -> str:
        role = self.rng.choice(self.roles)
        return f"(does {role} {self.rng.choice(['(go ?x)', 'push', 'noop', f'(go {self.number()})'])})"

    def does_or_nothing(self) -> list[str]:
        return [self.does()] if self.chance(0.6) else []


def generate_sheet(seed: int) -> str:
    """The same sheet for the same seed. Every role always has a legal move, so that play continues."""
    write = _Writer(random.Random(seed))
    _write_facts(write)
    for number in range(write.rng.randint(0, 4)):
        _write_relation(write, f"q{number}")
    _write_legal(write)
    _write_judges(write)
    _write_moves(write)  # last: other rules may not use what depends on moves
    return "\n".join(write.lines)


def _write_facts(write: _Writer) -> None:
    numbers = range(write.size)
    write.lines += [f"(role {role})" for role in write.roles]
    write.lines += [f"(n {n})" for n in numbers]
    write.lines += ["(e 0 1)", *(f"(e {a} {b})" for a in numbers for b in numbers if write.chance(0.4))]
    write.lines += [f"(init {flag})" for flag in write.flags if write.chance(0.5)]
    write.lines += [f"(init (at {n}))" for n in numbers if write.chance(0.4)]
    if write.has_links:
        write.lines += [f"(init (link {a} {b}))" for a in numbers for b in numbers if write.chance(0.3)]
        write.lines.append("(<= (next (link ?x ?y)) (true (link ?x ?y)) (not (does r push)))")
        write.lines.append("(<= (next (link ?y ?x)) (true (link ?x ?y)) (does r push))")
        write.lines.append("(<= (next (link ?x ?y)) (does r (go ?x)) (e ?x ?y))")


def _write_relation(write: _Writer, name: str) -> None:
    arity = write.rng.randint(0, 2)

    def atom(given: Callable[[], str]) -> str:
        return f"({name} {' '.join(given() for _ in range(arity))})" if arity else name

    heads = _VARIABLES[:arity]
    arguments = iter(heads)
    head = atom(lambda: next(arguments))
    recursive = bool(arity) and write.chance(0.7)
    for _ in range(write.rng.randint(1, 3)):
        given = []
        if recursive and write.chance(0.7):
            call = atom(lambda: write.rng.choice(_VARIABLES))
            ends = f"{write.rng.choice(_VARIABLES)} {write.rng.choice(_VARIABLES)}"
            given = [call, f"(true (link {ends}))" if write.has_links else f"(e {ends})"]
        write.rule(head, write.body(heads, given))
    write.relations.append(atom)


def _write_legal(write: _Writer) -> None:
    for role in write.roles:
        write.lines.append(f"(legal {role} noop)")
        for _ in range(write.rng.randint(0, 2)):
            write.rule(f"(legal {role} (go ?x))", write.body(["?x"]))
        if write.chance(0.5):
            write.rule(f"(legal {role} push)", write.body())
    if write.chance(0.8):
        write.lines += ["(<= (legal r (go ?x)) (n ?x) (not (true (at ?x))))", "(<= (next (at ?x)) (does r (go ?x)))"]
    if write.chance(0.8):
        write.lines.append("(legal r push)")


def _write_judges(write: _Writer) -> None:
    for role in write.roles:
        for value in (0, 50, 100):
            write.rule(f"(goal {role} {value})", write.body())
    write.rule("terminal", write.body([], ["(true p0)", "(not (true (at 0)))", "(true (at 1))"]))


def _write_moves(write: _Writer) -> None:
    if write.chance(0.5):
        write.rule("(moved ?x)", write.body(["?x"], [write.does()]))
        write.relations.append(lambda given: f"(moved {given()})")
    for flag in write.flags:
        for _ in range(write.rng.randint(0, 2)):
            write.rule(f"(next {flag})", write.body([], [*write.does_or_nothing(), "(n 0)"]))
        if write.chance(0.5):
            write.lines.append(f"(<= (next {flag}) (does {write.rng.choice(write.roles)} push) (not (true {flag})))")
        if write.chance(0.4):
            write.lines.append(f"(<= (next {flag}) (true {flag}) (not (does r {write.rng.choice(['push', 'noop'])})))")
    for _ in range(write.rng.randint(1, 3)):
        write.rule("(next (at ?x))", write.body(["?x"], write.does_or_nothing()))
    if write.chance(0.7):
        write.lines.append(f"(<= (next (at ?x)) (true (at ?x)) (not {write.does()}))")
    if write.chance(0.6):
        for role in write.roles:
            later = [f"(next {write.flag()})", "(next (at ?x))", f"(legal {role} (go ?x))"]
            given = [*write.does_or_nothing(), *([write.rng.choice(later)] if write.chance(0.3) else [])]
            write.rule(f"(sees {role} (saw ?x))", write.body(["?x"], given))
