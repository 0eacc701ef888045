"""Random small games whose states are known to all players, as rulesheets: a random graph in layers, told by facts."""

import itertools
import random

ROLES = ("one", "two", "three")


def generate_sheet(
    seed: int,
    *,
    players: int = 2,
    simultaneous: bool = True,
    zero_sum: bool = True,
    chance: bool = False,
    tree: bool = False,
) -> str:
    """Every state says who may do what; players perceive the next state, in GDL-II if chance takes part.

    With `tree`, every state follows one joint action only, so that histories never merge.
    """
    rng = random.Random(seed)
    roles = [*ROLES[:players], *(["random"] if chance else [])]
    variables = [f"?m{n}" for n in range(len(roles))]
    joint = " ".join(variables)
    does = " ".join(f"(does {role} {variable})" for role, variable in zip(roles, variables, strict=True))
    lines = [
        *(f"(role {role})" for role in roles),
        "(init (state 0 0))",
        "(<= (legal ?r ?m) (true (state ?l ?s)) (option ?l ?s ?r ?m))",
        f"(<= (next (state ?k ?t)) (true (state ?l ?s)) {does} (arc ?l ?s {joint} ?k ?t))",
        "(<= terminal (true (state ?l ?s)) (end ?l ?s))",
        "(<= (goal ?r ?v) (true (state ?l ?s)) (worth ?l ?s ?r ?v))",
    ]
    if chance:
        lines.append(
            f"(<= (sees ?r (now ?k ?t)) (true (state ?l ?s)) {does} (arc ?l ?s {joint} ?k ?t) (role ?r)"
            " (distinct ?r random))"
        )
    depth, width = (rng.randint(2, 3) if tree else rng.randint(2, 4)), rng.randint(2, 4)
    following = 1
    for layer in range(depth + 1):
        states, following = following, 0
        for state in range(states):
            if layer == depth or (layer > 1 and rng.random() < 0.25):
                lines += _end(rng, layer, state, players, zero_sum)
                continue
            movers = set(range(players)) if simultaneous else {rng.randrange(players)}
            options = [rng.randint(1, 3) if n in movers or roles[n] == "random" else 1 for n in range(len(roles))]
            for role, count in zip(roles, options, strict=True):
                lines += [f"(option {layer} {state} {role} a{move})" for move in range(count)]
            for moves in itertools.product(*map(range, options)):
                named = " ".join(f"a{move}" for move in moves)
                after = following if tree else rng.randrange(width)
                following = following + 1 if tree else width
                lines.append(f"(arc {layer} {state} {named} {layer + 1} {after})")
    return "\n".join(lines)


def _end(rng: random.Random, layer: int, state: int, players: int, zero_sum: bool) -> list[str]:
    goals = [rng.choice([0, 10, 30, 50, 70, 90, 100]) for _ in range(players)]
    if zero_sum:
        goals[1] = 100 - goals[0]
    worth = [f"(worth {layer} {state} {role} {goal})" for role, goal in zip(ROLES, goals, strict=False)]
    return [f"(end {layer} {state})", *worth]
