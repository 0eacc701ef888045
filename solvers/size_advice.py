"""What to do with a game that is too large to unroll: solve its states, add a step counter, search, or sample.

The advice has commands to copy.
"""

from gdlx.envs import dynamics, game_facts, game_spec
from gdlx.envs.states import state_count
from gdlx.envs.trees import game_tree
from gdlx.envs.trees.estimates import block_estimate
from gdlx.envs.trees.factored import private_registers, symmetry_group
from gdlx.propnet import library
from gdlx.propnet.checks import repetition
from gdlx.propnet.circuits import propnet
from gdlx.propnet.common import limits
from gdlx.solvers import algorithms
from gdlx.solvers.mccfr import table_state
from gdlx.solvers.runs import table_solver

_ALGORITHM = algorithms.SAMPLER
_SECONDS = 60
_FEW_GATES = 5_000  # of a propnet that is played a thousand steps in about a second
_STEPS = 20  # of random play that shows whether a game is turn-taking
_FITTING = 0.2  # of the limit on joint actions: their number is estimated from below
_SHORT = 200  # joint actions of matches that are short enough to sample although states repeat


def explain(
    game: game_spec.GameSpec,
    propnet: propnet.PropNet,
    error: game_tree.TooLargeError,
    max_nodes: int = limits.NODES,
    *,
    symmetries: bool = False,
) -> game_tree.TooLargeError:
    """Returns the error with advice that fits the game: which of its facts are in the way, and the command to run.

    Args:
      game: the game.
      propnet: its propnet.
      error: why it was not unrolled.
      max_nodes: the limit with which it was not.
      symmetries: whether symmetric information sets were left out already.
    """
    if isinstance(error, game_tree.TerminalsInBlocksError):
        return _in_blocks(game, error)
    facts = game_facts.probe(propnet)
    if is_endless(propnet):
        return _endless(game, propnet, facts)
    states = state_count.describe(propnet)[1]
    if states is not None and states.joint_actions <= _FITTING * limits.NODES:
        return game_tree.TooLargeError(error.reason, _advise_states(game, facts, states))
    smaller = f"Make the game smaller{_parameters(game)}"
    if isinstance(error, game_tree.TooManyBlocksError) or max_nodes < limits.NODES:
        smaller = f"Allow more with `max_nodes=`, which takes more memory, or make the game smaller{_parameters(game)}"
    # Observed, not proved: a proof may take minutes in a large game.
    if facts.perfect_information and not dynamics.has_simultaneous_choices(propnet, steps=_STEPS):
        agents = " ".join(["uct", *["random"] * (len(propnet.players) - 1)])
        advice = (
            f"{smaller}. Solving needs the whole tree; search plays such a game of perfect information without it: "
            f"`gdlx match {game.spec} {agents} --games 10`"
        )
    else:
        fits_in_blocks = _fits_in_blocks(propnet, error)
        if fits_in_blocks:
            command = f"`gdlx solve {game.spec}`"
            smaller = (
                f"Take an algorithm that works on its blocks: {command}; or make the game smaller{_parameters(game)}"
            )
        advice = (
            f"{smaller}, or sample it without unrolling: `{sampling_command(game, propnet)}`. "
            "Then bound what it reached: `gdlx evaluate RESULT --bound`"
        )
        order = 1 if symmetries or fits_in_blocks else _useful_symmetries(propnet)
        if order > 1:
            advice += (
                f". Its rules have {order} symmetries: `gdlx solve {game.spec} --symmetries` leaves out what they "
                "exchange, and may fit"
            )
    return type(error)(error.reason, advice)


def is_endless(propnet: propnet.PropNet) -> bool:
    """Whether random play shows that the tree of the game is infinite.

    >>> from gdlx.propnet import games
    >>> is_endless(games.compile_game("kuhn_poker"))
    False
    """
    facts = game_facts.probe(propnet)
    return facts.repetition is not None or (propnet.gates <= _FEW_GATES and not facts.ends)


def can_sample(propnet: propnet.PropNet) -> bool:
    """Whether the matches of an endless game are short enough to sample it as it is.

    >>> from gdlx.propnet import games
    >>> can_sample(games.compile_game("kuhn_poker"))
    True
    """
    facts = game_facts.probe(propnet)
    return facts.ends and facts.longest_match <= _SHORT


def _in_blocks(game: game_spec.GameSpec, error: game_tree.TerminalsInBlocksError) -> game_tree.TooLargeError:
    return game_tree.TerminalsInBlocksError(
        f"{error.reason}, as linear programming and opponent models do",
        f"Take an algorithm that works on blocks, and no model: `gdlx solve {game.spec} --algorithm "
        f"{algorithms.FULL}`; or make the game smaller{_parameters(game)}",
    )


def _advise_states(game: game_spec.GameSpec, facts: game_facts.GameFacts, states: state_count.StateCount) -> str:
    """Which command solves a game on its states."""
    number = f"{states.states:,}" if states.exact else f"more than {states.states:.1e}"
    known = f"All players always know the state, and there are {number} states"
    zero_sum = facts.payoffs(game.payoff).zero_sum and len(facts.propnet.players) == 2
    if zero_sum or not dynamics.has_simultaneous_choices(facts.propnet, steps=_STEPS):
        return f"{known}: `gdlx solve {game.spec} --algorithm backward-induction` solves it exactly"
    return f"{known}: `gdlx solve {game.spec} --states` runs on these"


def symmetry_hint(propnet: propnet.PropNet) -> str:
    """Names the argument that may make an exact judgement of a policy possible; empty if there are no symmetries.

    >>> from gdlx.propnet import games
    >>> symmetry_hint(games.compile_game("kuhn_poker"))
    ''
    """
    order = _useful_symmetries(propnet)
    return (
        f". Its rules have {order} symmetries: a policy that they do not change may be judged exactly with "
        "`symmetries=True`"
    ) * (order > 1)


def _fits_in_blocks(propnet: propnet.PropNet, error: game_tree.TooLargeError) -> bool:
    """Whether a game that was not unrolled node by node fits if it is unrolled in blocks."""
    if isinstance(error, game_tree.TooManyBlocksError) or not game_spec.prefers_blocks(propnet):
        return False
    guess = game_facts.probe(propnet).histories()
    if guess.is_truncated:
        return False
    return block_estimate.estimate_blocks(propnet, guess.histories).widest.estimate <= limits.BLOCKS


def _useful_symmetries(propnet: propnet.PropNet) -> int:
    """The number of symmetries of a game that comes in blocks, which shrink with them; 1 for others."""
    if not (private_registers.find_owners(propnet) >= 0).any():
        return 1
    group = symmetry_group.build(propnet)
    return 1 if group is None else group.order


def _endless(
    game: game_spec.GameSpec, propnet: propnet.PropNet, facts: game_facts.GameFacts
) -> game_tree.TooLargeError:
    advice = f"Add a step counter to the rules, e.g. {repetition.STEP_COUNTER}"
    if facts.repetition is None:
        return game_tree.TooLargeError(f"{game.spec} does not end: no random match did", advice)
    if can_sample(propnet):
        advice += f", or sample it as it is: `{sampling_command(game, propnet)}`"
    why = facts.repetition.in_words()
    return game_tree.TooLargeError(f"{game.spec} need not end, so its tree is infinite: {why}", advice)


def sampling_command(game: game_spec.GameSpec, propnet: propnet.PropNet) -> str:
    """The command that samples a game into a hash table of a size that fits into memory, for a minute."""
    return f"gdlx solve {game.spec} --algorithm {_ALGORITHM} --table {table_bits(propnet)} --time {_SECONDS}"


def table_bits(propnet: propnet.PropNet) -> int:
    """Base-2 logarithm of the size of a hash table that fits into memory here, and is large enough for a minute.

    >>> from gdlx.propnet import games
    >>> table_bits(games.compile_game("kuhn_poker"))
    22
    """
    actions = max((len(role.moves) for role in propnet.players), default=1)
    batch, steps = algorithms.find(_ALGORITHM).sampling_config.batch, game_facts.probe(propnet).step_capacity
    largest = table_state.largest_bits(
        len(propnet.players),
        actions,
        table_state.SamplerConfig(batch, steps),
        table_solver.memory_budget(),
        devices=len(table_solver.default_devices()),
    )
    return min(algorithms.TABLE_BITS, largest)


def _parameters(game: game_spec.GameSpec) -> str:
    """The parameters that a game of the library has, which may be smaller."""
    try:
        chosen, settings = library.parse_spec(game.spec)
    except library.LibraryError:
        return ""
    if not settings:
        return ""
    return (
        f", as in {chosen.name}:{','.join(f'{name}={value}' for name, value in settings.items())} with smaller numbers"
    )
