"""A training that loses its power on the way, and ends with the same numbers as one that never did."""

import argparse
import math
import os
import random
import signal
import time

import hostler

GOAL = (1.0, 2.0, 3.0)


class Walk:
    """A model of three numbers. Anything with these two methods can be tracked, as models of torch can."""

    def __init__(self):
        self.weights = [0.0, 0.0, 0.0]

    def state_dict(self):
        return {"weights": self.weights}

    def load_state_dict(self, state):
        self.weights = state["weights"]

    def learn(self, rate):
        """One step towards 1, 2, 3 by a noisy gradient; returns its squared distance."""
        errors = [w - goal + random.gauss(0, 0.5) for w, goal in zip(self.weights, GOAL, strict=True)]
        self.weights = [w - rate * error for w, error in zip(self.weights, errors, strict=True)]
        return math.dist(self.weights, GOAL) ** 2


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--rate", type=float, default=0.05)
    parser.add_argument("--cut_power_at", type=int, default=0, help="at this step, once")
    args = parser.parse_args()
    random.seed(7)
    model = Walk()
    with hostler.start(args, save_every="50 steps", allow_changed=["cut_power_at"]) as run:
        run.track(model=model)
        for step in run.steps(args.steps):
            error = model.learn(args.rate)
            run.log(error=error)
            time.sleep(0.002)  # as long as a small network takes
            if step == args.cut_power_at > 0 and run.attempt == 1:
                os.kill(os.getpid(), signal.SIGKILL)  # nothing is said, nothing is saved
        run.finish(weights=model.weights)
    print("weights", *model.weights)


if __name__ == "__main__":
    main()
