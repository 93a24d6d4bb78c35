"""A script as people have them: options of its own, log lines of its own, a checkpoint file, --resume."""

import argparse
import logging
import math
import os
import pickle
import random


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--learning-rate", type=float, default=0.05)
    parser.add_argument("--hidden", type=int, default=8, help="units of the hidden layer")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--save-dir", default="checkpoints")
    parser.add_argument("--resume", help="a checkpoint to go on from")
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="[%(asctime)s] %(message)s")

    random.seed(1)
    data = [(x / 20, math.sin(x / 20 * math.pi)) for x in range(-20, 21)]
    net = [[random.gauss(0, 1), random.gauss(0, 1), random.gauss(0, 0.3)] for _ in range(args.hidden)]
    first = 0
    if args.resume:
        with open(args.resume, "rb") as file:
            first, net = pickle.load(file)  # noqa: S301
        logging.info("resumed after epoch %d", first)

    os.makedirs(args.save_dir, exist_ok=True)
    for epoch in range(first, args.epochs):
        total = 0.0
        for x, y in random.Random(epoch).sample(data, len(data)):
            hidden = [math.tanh(w * x + b) for w, b, _ in net]
            error = sum(h * v for h, (_, _, v) in zip(hidden, net, strict=True)) - y
            total += error * error
            for h, unit in zip(hidden, net, strict=True):
                back = error * unit[2] * (1 - h * h)
                unit[0] -= args.learning_rate * back * x
                unit[1] -= args.learning_rate * back
                unit[2] -= args.learning_rate * error * h
        logging.info("epoch %d: train_loss=%.5f lr=%g", epoch + 1, total / len(data), args.learning_rate)
        with open(os.path.join(args.save_dir, "last.pkl"), "wb") as file:
            pickle.dump((epoch + 1, net), file)


if __name__ == "__main__":
    main()
