"""Write the rules of a game, solve it, and read its policy: python examples/solve_own_game.py"""

import pathlib
import tempfile

import gdlx

# Matching pennies in which heads pays double. The equilibrium shows heads with probability 1/3.
RULES = """
(role even) (role odd)
(side heads) (side tails)
(init start)
(<= (legal ?player (show ?side)) (role ?player) (side ?side) (true start))
(<= (next (shown ?player ?side)) (does ?player (show ?side)))
(<= (sees ?player done) (role ?player) (true start))
(<= terminal (not (true start)))
(<= match (true (shown even ?side)) (true (shown odd ?side)))
(<= (goal even 70) match (true (shown even heads)))
(<= (goal even 60) match (true (shown even tails)))
(<= (goal even 50) terminal (not match))
(<= (goal odd 30) match (true (shown even heads)))
(<= (goal odd 40) match (true (shown even tails)))
(<= (goal odd 50) terminal (not match))
"""


def main() -> gdlx.Solution:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "pennies.gdl"
        path.write_text(RULES)
        report = gdlx.check(str(path))
        for problem in report.diagnostics:
            print(problem.render("pennies.gdl"))
        solution = gdlx.solve(str(path), "cfr+", iterations=2000)
    print(solution)
    print("even plays", {action: round(p, 3) for action, p in solution.policy("even").items()})
    return solution


if __name__ == "__main__":
    main()
