"""Playouts spread over all devices, with running totals on the host."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gdlx.envs import payoffs
from gdlx.envs.lowering import rng
from gdlx.envs.packed import playouts
from gdlx.propnet.circuits import propnet

_Spec: Any = jax.sharding.PartitionSpec
_sum: Any = jax.lax.psum


@dataclasses.dataclass(frozen=True)
class PlayoutStats:
    """Running totals; Python integers, so that nothing overflows. `ShardedPlayout.advance` donates `games`.

    Attributes:
      games: the current states.
      states: number of states visited.
      terminals: matches that reached a terminal state.
      unplayable: matches that stopped because some role had no legal move.
      truncated: matches stopped by the step limit.
      multiple_goals: terminals in which a player had more than one goal value.
      no_goal: terminals in which a player had no goal value.
      goals: how often each goal value was a player's highest one, by role.
      earlier: joint actions of the first matches before counting began.
      unfinished: joint actions of the matches that have not ended.

    >>> import gdlx
    >>> rps = gdlx.compile("rps")
    >>> playout = ShardedPlayout(rps, max_steps=10, min_words=2)
    >>> stats = playout.advance(playout.start(seed=0, steps=1), steps=4)
    >>> sorted(stats.mean_goals(rps)), sum(stats.goals) == 2 * stats.terminals
    (['player1', 'player2'], True)
    """

    games: playouts.PlayoutState
    states: int
    terminals: int
    unplayable: int
    truncated: int
    multiple_goals: int
    no_goal: int
    goals: tuple[int, ...]
    earlier: int = 0
    unfinished: int = 0

    def __repr__(self) -> str:
        return f"PlayoutStats({self.terminals:,} matches, {self.states:,} states)"

    def mean_length(self) -> float | None:
        """Joint actions per match that has ended; None before any has."""
        finished = self.terminals + self.unplayable + self.truncated
        return (self.earlier + self.states - self.unfinished) / finished if finished else None

    def mean_goals(self, propnet: propnet.PropNet) -> dict[str, float | None]:
        """The mean goal value of each player; None before any match has ended."""
        means: dict[str, float | None] = {}
        position = 0
        for role in propnet.roles:
            counts = self.goals[position : position + len(role.goal_values)]
            position += len(role.goal_values)
            if not role.is_random:
                total = sum(count * value for count, value in zip(counts, role.goal_values, strict=True))
                means[role.name] = total / self.terminals if self.terminals else None
        return means

    def contradicts_zero_sum(self, propnet: propnet.PropNet, payoffs: payoffs.Payoffs) -> bool:
        """Whether some goal values cannot have had the constant sum that the payoffs assume."""
        values = [(role.is_random, value) for role in propnet.roles for value in role.goal_values]
        total = sum(count * value for count, (ignored, value) in zip(self.goals, values, strict=True) if not ignored)
        return payoffs.zero_sum and total != 2 * payoffs.offset * self.terminals

    def rewards(self, propnet: propnet.PropNet, payoffs: payoffs.Payoffs) -> dict[str, float | None]:
        """The mean payoff of each player; None before any match has ended."""
        return {
            role: None if goal is None else goal - payoffs.offset for role, goal in self.mean_goals(propnet).items()
        }

    def summary(self, propnet: propnet.PropNet, payoffs: payoffs.Payoffs) -> dict[str, object]:
        """All statistics, by name."""
        return {
            "mean_length": self.mean_length(),
            "mean_rewards": self.rewards(propnet, payoffs),
            "mean_goals": self.mean_goals(propnet),
            "zero_sum": payoffs.zero_sum,
            "matches": self.terminals,
            "unplayable": self.unplayable,
            "overlong": self.truncated,
            "goal_conflicts": self.multiple_goals + self.no_goal,
        }


@dataclasses.dataclass(frozen=True, eq=False)
class ShardedPlayout:
    """Random playouts on all devices.

    The games do not depend on the number of devices: the random numbers of a word depend on its index alone.

    Attributes:
      propnet: the compiled rules.
      max_steps: joint actions after which a match is stopped.
      min_words: at least so many words of 32 games.

    >>> import gdlx
    >>> playout = ShardedPlayout(gdlx.compile("rps"), max_steps=10, min_words=2)
    >>> playout
    ShardedPlayout(rps: at least 64 games, at most 10 steps)
    >>> stats = playout.advance(playout.start(seed=0, steps=1), steps=4)
    >>> stats.terminals == stats.states, stats.mean_length()
    (True, 1.0)
    """

    propnet: propnet.PropNet
    max_steps: int
    min_words: int

    def __repr__(self) -> str:
        games = playouts.GAMES_PER_WORD * self.min_words
        return f"ShardedPlayout({self.propnet.name}: at least {games:,} games, at most {self.max_steps:,} steps)"

    @functools.cached_property
    def words(self) -> int:
        """The number of words, a multiple of the number of devices."""
        devices = jax.device_count()
        return -(-self.min_words // devices) * devices

    @functools.cached_property
    def _playout(self) -> playouts.Playout:
        return playouts.Playout(self.propnet, self.max_steps)

    @functools.cached_property
    def _mesh(self) -> jax.sharding.Mesh:
        return jax.make_mesh((jax.device_count(),), ("games",), axis_types=(jax.sharding.AxisType.Auto,))

    @functools.cached_property
    def _specs(self) -> Any:
        split = _Spec("games")
        return playouts.PlayoutState(_Spec(None, "games"), rng.Streams(split, split, split, split))

    @functools.cached_property
    def _run(self) -> Any:
        def part(
            games: playouts.PlayoutState, steps: jax.Array
        ) -> tuple[playouts.PlayoutState, playouts.PlayoutCounts, jax.Array]:
            after, totals = self._playout.run(games, steps)
            counters = jax.lax.population_count(after.state[len(self.propnet.initial) :]).sum(axis=1, dtype=jnp.uint32)
            return after, *jax.tree.map(lambda x: _sum(x, "games"), (totals, counters))

        mapped = jax.shard_map(
            part,
            mesh=self._mesh,
            in_specs=(self._specs, _Spec()),
            out_specs=(self._specs, _Spec(), _Spec()),
            check_vma=False,
        )
        return jax.jit(mapped, donate_argnums=0)

    def start(self, seed: int, steps: int) -> PlayoutStats:
        """Starts games, and advances them by so many steps that are not counted (which compile the program)."""
        make = jax.jit(
            functools.partial(self._playout.init, words=self.words),
            out_shardings=jax.tree.map(lambda spec: jax.sharding.NamedSharding(self._mesh, spec), self._specs),
        )
        nothing = PlayoutStats(make(jax.random.key(seed)), 0, 0, 0, 0, 0, 0, ())
        warm = self.advance(nothing, steps)
        return dataclasses.replace(nothing, games=warm.games, earlier=warm.unfinished)

    def advance(self, stats: PlayoutStats, steps: int) -> PlayoutStats:
        """Advances every game by so many steps, and adds to the totals. `stats.games` is donated."""
        games, totals, counters = self._run(stats.games, jnp.asarray(steps, jnp.int32))
        counts = [
            int(x)
            for x in (totals.terminals, totals.unplayable, totals.truncated, totals.multiple_goals, totals.no_goal)
        ]
        goals = np.asarray(totals.goals).tolist()
        before = stats.goals or (0,) * len(goals)
        return PlayoutStats(
            games,
            stats.states + self.words * playouts.GAMES_PER_WORD * steps,
            stats.terminals + counts[0],
            stats.unplayable + counts[1],
            stats.truncated + counts[2],
            stats.multiple_goals + counts[3],
            stats.no_goal + counts[4],
            tuple(a + b for a, b in zip(before, goals, strict=True)),
            stats.earlier,
            sum(count << bit for bit, count in enumerate(np.asarray(counters).tolist())),
        )
