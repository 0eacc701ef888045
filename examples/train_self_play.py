"""Train a network by self-play and let it play against random moves: python examples/train_self_play.py"""

import sys

import gdlx
from gdlx import nets
from gdlx.nets import evaluation
from gdlx.nets.learners import learner_registry
from gdlx.solvers.runs import driver


def main(iterations: int = 200) -> float:
    """Returns the mean goal of the first player against random play."""
    game = "tictactoe"
    propnet = gdlx.compile(game)
    settings = learner_registry.make_settings("self-play", {"games": "64"})
    window = learner_registry.default_window(propnet, None)
    config = nets.TrainConfig(gdlx.GameSpec(game), "self-play", window, settings)
    learner = nets.make_learner(config, propnet, None)
    run = nets.TrainingRun(config, learner, gdlx.envs.probe(propnet).digest)
    for point in run.points(driver.StopCondition(iterations)):
        print(f"iteration {point.iteration}: loss {point.metrics['loss']:.3f}")
    result = evaluation.evaluate_against_random(learner, learner.policy_params(run.state), games=500)
    first = learner.encoder.env.players[0]
    print(f"{first} gets a goal of {result.goal[0]:.1f} ± {result.error[0]:.1f} against random play")
    return float(result.goal[0])


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
