"""Small games for tests of environments: each has a feature that no game of the library has."""

from unittest import mock

from gdlx.envs import env, payoffs
from gdlx.envs.lowering import lower
from gdlx.propnet.circuits import build, compiler, propnet
from gdlx.tests.helpers import support

# Recursion through the state: reachability is a least fixpoint over edges that moves add and remove.
MAZE = """
(role digger) (role random)
(room 1) (room 2) (room 3) (room 4) (room 5)
(<= (legal digger (door ?x ?y)) (room ?x) (room ?y) (distinct ?x ?y))
(legal random wait)
(<= (legal random (collapse ?x ?y)) (true (door ?x ?y)))
(init (door 4 5)) (init (round 1))
(succ 1 2) (succ 2 3) (succ 3 4) (succ 4 5) (succ 5 6) (succ 6 7)
(<= (next (round ?n)) (true (round ?m)) (succ ?m ?n))
(<= (next (door ?x ?y)) (does digger (door ?x ?y)))
(<= (next (door ?x ?y)) (true (door ?x ?y)) (not (does random (collapse ?x ?y))))
(<= (path ?x ?y) (true (door ?x ?y)))
(<= (path ?x ?z) (path ?x ?y) (true (door ?y ?z)))
(<= (sees digger (reachable ?y)) (path 1 ?y))
(<= terminal (path 1 5))
(<= terminal (true (round 7)))
(<= (goal digger 100) (path 1 5))
(<= (goal digger 0) (not (path 1 5)))
"""

# Some terminal states give a player two goal values, some none; (choose 1) is well-formed.
CONFLICTS = """
(role first) (role second)
(kind 1) (kind 2) (kind 3) (kind 4)
(<= (legal first (choose ?k)) (kind ?k))
(legal second wait)
(<= (next (chosen ?k)) (does first (choose ?k)))
(<= terminal (true (chosen ?k)))
(<= (goal first 20) (true (chosen 1))) (<= (goal first 20) (true (chosen 2)))
(<= (goal first 70) (true (chosen 2))) (<= (goal first 100) (true (chosen 2)))
(<= (goal first 30) (true (chosen 4)))
(<= (goal second 80) (true (chosen 1))) (<= (goal second 10) (true (chosen 2)))
(<= (goal second 10) (true (chosen 3)))
(<= (goal second 60) (true (chosen 4))) (<= (goal second 70) (true (chosen 4)))
"""

# One move out of three leads to a state in which `second` has no legal move.
DEAD_END = """
(role first) (role second)
(init (at start))
(<= (legal first (go ?x)) (true (at start)) (place ?x))
(<= (legal first rest) (not (true (at start))))
(<= (legal second wait) (not (true (at hole))))
(place hole) (place hill) (place home)
(<= (next (at ?x)) (does first (go ?x)))
(<= (next (at home)) (true (at hill)))
(<= terminal (true (at home)))
(goal first 100) (goal second 0)
"""

# A game that never ends unless a player stops it.
ENDLESS = """
(role first) (role random)
(legal first stop) (legal first go)
(legal random on) (legal random off)
(<= (next stopped) (does first stop) (does random on))
(<= terminal (true stopped))
(<= (sees first ?x) (does random ?x))
(goal first 50)
"""

OVER_AT_ONCE = """
(role first) (legal first wait) (init done)
(<= (next done) (true done))
(<= terminal (true done)) (goal first 100)
"""

# Two players and chance move simultaneously; percepts depend on all of them.
COINS = """
(role odd) (role random) (role even)
(side heads) (side tails)
(<= (legal ?r (show ?s)) (role ?r) (side ?s))
(<= (legal random edge) (true (round 1)))
(init (round 1))
(<= (next (round 2)) (true (round 1)))
(<= (next (round 3)) (true (round 2)))
(<= same (does odd (show ?s)) (does even (show ?s)))
(<= (sees even won) (not same)) (<= (sees odd won) same)
(<= (sees odd (coin ?s)) (does random (show ?s)))
(<= (next (score odd)) same (true (round 1)))
(<= (next (score odd)) (true (score odd)))
(<= terminal (true (round 3)))
(<= (goal odd 90) (true (score odd))) (<= (goal even 10) (true (score odd)))
(<= (goal odd 30) (not (true (score odd)))) (<= (goal even 70) (not (true (score odd))))
"""


def compile_text(text: str, name: str = "test.gdl", iterated: bool = False) -> propnet.PropNet:
    """Compiles a sheet; with `iterated`, even small recursion is not unrolled."""
    with mock.patch.object(build, "_UNROLLED_GATES", -1 if iterated else build._UNROLLED_GATES):
        return compiler.compile_rulesheet(support.read(text, name))


def make_env(
    text: str,
    *,
    payoff: payoffs.PayoffMode = "goal",
    form: lower.LoweringMode = "auto",
    max_steps: int = 0,
    iterated: bool = False,
) -> env.Env:
    compiled = compile_text(text, iterated=iterated)
    return env.Env(compiled, payoffs.infer_payoffs(compiled, payoff), form, max_steps)
