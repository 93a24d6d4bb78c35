"""Trains the same transformer with TensorFlow, in one process or in as many as TF_CONFIG names."""

from __future__ import annotations

import argparse
import functools
import json
import math
import os
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # read when it is imported

import numpy as np
import tensorflow as tf

import hostler
import words
from words import BEGIN, END, PAD, Recipe

ROUND = 8  # widths of batches are multiples of it: few graphs, little padding


class Transformer:
    """Encoder and decoder, as variables by name; `translate` takes the likeliest word each time."""

    def __init__(
        self,
        sources: int,
        targets: int,
        *,
        width: int,
        layers: int,
        heads: int,
        dropout: float,
        seed: int = 0,
    ) -> None:
        self.width, self.layers, self.heads, self.dropout = width, layers, heads, dropout
        self.weights: dict[str, tf.Variable] = {}
        self._chance = np.random.default_rng(seed)
        self._matrix("source", sources, width)
        self._matrix("target", targets, width)
        for n in range(layers):
            self._attention(f"encoder.{n}.self")
            self._attention(f"decoder.{n}.self")
            self._attention(f"decoder.{n}.source")
            self._feed(f"encoder.{n}.feed")
            self._feed(f"decoder.{n}.feed")
        self._norm("encoder.norm")
        self._norm("decoder.norm")
        self._matrix("out.weight", width, targets)
        self._vector("out.bias", targets)

    def scores(self, source: tf.Tensor, said: tf.Tensor, seed: tf.Tensor | None = None) -> tf.Tensor:
        """For each word that was said, what may follow it; with a seed, some of it dropped."""
        drops, length = _Drops(self.dropout, seed), said.shape[1]
        seen = tf.cast(source != PAD, tf.float32)[:, None, None, :]
        memory = drops(self._placed("source", source))
        for n in range(self.layers):
            memory += drops(self._attend(f"encoder.{n}.self", memory, None, seen))
            memory += drops(self._forward(f"encoder.{n}.feed", memory))
        memory = self._normed("encoder.norm", memory)
        earlier = tf.linalg.band_part(tf.ones((length, length)), -1, 0)
        here = drops(self._placed("target", said))
        for n in range(self.layers):
            here += drops(self._attend(f"decoder.{n}.self", here, None, earlier))
            here += drops(self._attend(f"decoder.{n}.source", here, memory, seen))
            here += drops(self._forward(f"decoder.{n}.feed", here))
        return self._normed("decoder.norm", here) @ self.weights["out.weight"] + self.weights["out.bias"]

    def translate(self, source: tf.Tensor) -> tf.Tensor:
        source = tf.cast(source, tf.int32)
        said = tf.fill((len(source), 1), BEGIN)
        for _ in range(words.most_pieces(source.shape[1])):
            following = tf.argmax(self.scores(source, said)[:, -1], -1, output_type=tf.int32)
            said = tf.concat([said, following[:, None]], 1)
            if np.all(np.any(said.numpy() == END, 1)):
                break
        return said[:, 1:]

    def state_dict(self) -> dict[str, Any]:
        return {name: one.numpy() for name, one in self.weights.items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name, one in self.weights.items():
            one.assign(state[name])

    def _matrix(self, name: str, rows: int, columns: int) -> None:
        bound = math.sqrt(6 / (rows + columns))
        drawn = self._chance.uniform(-bound, bound, (rows, columns)).astype("float32")
        self.weights[name] = tf.Variable(drawn)

    def _vector(self, name: str, size: int, value: float = 0.0) -> None:
        self.weights[name] = tf.Variable(np.full(size, value, "float32"))

    def _norm(self, name: str) -> None:
        self._vector(f"{name}.scale", self.width, 1.0)
        self._vector(f"{name}.shift", self.width)

    def _attention(self, name: str) -> None:
        self._norm(f"{name}.norm")
        for part in ("query", "key", "value", "out"):
            self._matrix(f"{name}.{part}", self.width, self.width)

    def _feed(self, name: str) -> None:
        self._norm(f"{name}.norm")
        self._matrix(f"{name}.up", self.width, 4 * self.width)
        self._vector(f"{name}.up.bias", 4 * self.width)
        self._matrix(f"{name}.down", 4 * self.width, self.width)
        self._vector(f"{name}.down.bias", self.width)

    def _placed(self, name: str, numbers: tf.Tensor) -> tf.Tensor:
        found = tf.gather(self.weights[name], numbers) * math.sqrt(self.width)
        return found + places(numbers.shape[1], self.width)

    def _normed(self, name: str, given: tf.Tensor) -> tf.Tensor:
        mean, variance = tf.nn.moments(given, -1, keepdims=True)
        level = (given - mean) * tf.math.rsqrt(variance + 1e-5)
        return level * self.weights[f"{name}.scale"] + self.weights[f"{name}.shift"]

    def _attend(self, name: str, here: tf.Tensor, there: tf.Tensor | None, seen: tf.Tensor) -> tf.Tensor:
        """What each place here takes from those it sees there; without a there, from its own sentence."""
        here = self._normed(f"{name}.norm", here)
        there = here if there is None else there
        query, key, value = (
            self._split(given @ self.weights[f"{name}.{part}"])
            for part, given in (("query", here), ("key", there), ("value", there))
        )
        likeness = query @ tf.transpose(key, (0, 1, 3, 2)) / math.sqrt(self.width // self.heads)
        taken = tf.nn.softmax(likeness - 1e9 * (1 - seen)) @ value
        joined = tf.reshape(tf.transpose(taken, (0, 2, 1, 3)), tf.shape(here))
        return joined @ self.weights[f"{name}.out"]

    def _split(self, given: tf.Tensor) -> tf.Tensor:
        shape = (-1, given.shape[1], self.heads, self.width // self.heads)
        return tf.transpose(tf.reshape(given, shape), (0, 2, 1, 3))

    def _forward(self, name: str, given: tf.Tensor) -> tf.Tensor:
        up = (
            self._normed(f"{name}.norm", given) @ self.weights[f"{name}.up"] + self.weights[f"{name}.up.bias"]
        )
        return tf.nn.relu(up) @ self.weights[f"{name}.down"] + self.weights[f"{name}.down.bias"]


class _Drops:
    """Dropout that depends on nothing but a seed, so that a restart drops the same."""

    def __init__(self, share: float, seed: tf.Tensor | None) -> None:
        self._share, self._seed, self._count = share, seed, 0

    def __call__(self, given: tf.Tensor) -> tf.Tensor:
        if self._seed is None or not self._share:
            return given
        self._count += 1
        return tf.nn.experimental.stateless_dropout(given, self._share, tf.add(self._seed, (0, self._count)))


class Adam:
    """Adam, whose state is kept like the model's."""

    def __init__(self, weights: dict[str, tf.Variable]) -> None:
        self._weights = weights
        self._mean = {name: tf.Variable(tf.zeros_like(one)) for name, one in weights.items()}
        self._square = {name: tf.Variable(tf.zeros_like(one)) for name, one in weights.items()}

    def apply(self, slopes: list[tf.Tensor], step: tf.Tensor, lr: tf.Tensor) -> None:
        count = tf.cast(step + 1, tf.float32)
        for (name, one), slope in zip(self._weights.items(), slopes, strict=True):
            mean = 0.9 * self._mean[name] + 0.1 * slope
            square = 0.98 * self._square[name] + 0.02 * slope**2
            self._mean[name].assign(mean)
            self._square[name].assign(square)
            even = mean / (1 - 0.9**count), square / (1 - 0.98**count)
            one.assign_sub(lr * even[0] / (tf.sqrt(even[1]) + 1e-8))

    def state_dict(self) -> dict[str, Any]:
        kept = {"mean": self._mean, "square": self._square}
        return {part: {name: one.numpy() for name, one in held.items()} for part, held in kept.items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for part, held in (("mean", self._mean), ("square", self._square)):
            for name, one in held.items():
                one.assign(state[part][name])


@functools.lru_cache(maxsize=256)
def places(length: int, width: int) -> np.ndarray:
    """Waves of different lengths, by which the model knows a word's place."""
    turn = np.arange(length)[:, None] * np.exp(np.arange(0, width, 2) * (-math.log(10000.0) / width))
    return np.stack([np.sin(turn), np.cos(turn)], -1).reshape(length, width).astype("float32")


def build(recipe: Recipe, seed: int = 0) -> Transformer:
    return Transformer(len(recipe.source), len(recipe.target), **recipe.shape, seed=seed)


def accuracy(model: Transformer, recipe: Recipe, pairs: words.Pairs) -> float:
    """The share of sentences that it translates without a fault."""
    source = tf.constant(words.padded([recipe.source.numbers(one) for one, _ in pairs]))
    found = model.translate(source).numpy().tolist()
    right = [recipe.target.sentence(row) == other for row, (_, other) in zip(found, pairs, strict=True)]
    return sum(right) / len(right)


def level(rows: list[list[int]], together: np.ndarray, chosen: np.ndarray) -> tf.Tensor:
    """One worker's rows, as wide as the longest of all: a graph is made for each width, by all at once."""
    longest = max(len(rows[n]) for n in together)
    width = -(-longest // ROUND) * ROUND
    return tf.constant(words.padded([rows[n] for n in chosen], width), tf.int32)


def join() -> tuple[int, int, tf.distribute.Strategy]:
    """Number of this worker and of all, and the strategy; each process has one device."""
    task = json.loads(os.environ.get("TF_CONFIG", "{}"))
    if gpus := tf.config.list_physical_devices("GPU"):
        tf.config.set_visible_devices(gpus[int(os.environ.get("LOCAL_RANK", "0")) % len(gpus)], "GPU")
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    return task.get("task", {}).get("index", 0), strategy.num_replicas_in_sync, strategy


def stepper(strategy: tf.distribute.Strategy, model: Transformer, optimizer: Adam) -> Any:
    """One step of all workers, each with its own batch."""

    def of_one(
        source: tf.Tensor, target: tf.Tensor, seed: tf.Tensor, step: tf.Tensor, lr: tf.Tensor
    ) -> tf.Tensor:
        said = tf.concat([tf.fill((len(target), 1), BEGIN), target[:, :-1]], 1)
        with tf.GradientTape() as tape:
            scores = model.scores(source, said, seed)
            each = tf.nn.sparse_softmax_cross_entropy_with_logits(target, scores)
            asked = tf.cast(target != PAD, tf.float32)
            loss = tf.reduce_sum(each * asked) / tf.reduce_sum(asked)
        slopes = [tf.convert_to_tensor(one) for one in tape.gradient(loss, list(model.weights.values()))]
        together = tf.distribute.get_replica_context().all_reduce("mean", slopes)
        optimizer.apply(together, step, lr)
        return loss

    return tf.function(lambda *given: strategy.run(of_one, args=given))


def train(
    run: hostler.Run, args: argparse.Namespace, rank: int, world: int, strategy: tf.distribute.Strategy
) -> None:
    pairs, heldout = words.read(args.pairs)
    recipe = words.recipe("tensorflow", pairs, args)
    with strategy.scope():
        model = build(recipe, args.seed)
        optimizer = Adam(model.weights)
    run.track(model=model, optimizer=optimizer, recipe=recipe)
    run.keep_best("accuracy", "max")
    del pairs[args.sentences :]
    sources = [recipe.source.numbers(one) for one, _ in pairs]
    targets = [recipe.target.numbers(other) for _, other in pairs]
    step, size = stepper(strategy, model, optimizer), args.batch_size * world
    steps = max(1, len(pairs) // size)
    for epoch in run.epochs(args.epochs):
        order = np.random.default_rng([args.seed, epoch]).permutation(len(pairs))
        for n in run.steps(steps):
            together = order[n * size : (n + 1) * size]
            source, target = (level(rows, together, together[rank::world]) for rows in (sources, targets))
            done = epoch * steps + n
            seed = tf.constant([args.seed * world + rank, done * 1000])
            lr = tf.constant(args.lr * words.rate(done, args.warmup))
            loss = step(source, target, seed, tf.constant(done), lr)
            if rank == 0:
                run.log(loss=strategy.experimental_local_results(loss)[0].numpy())
        if rank == 0:
            run.log(accuracy=accuracy(model, recipe, heldout))


def main() -> None:
    args = words.parsed(__doc__)
    rank, world, strategy = join()
    with hostler.start(args, save_every=args.save_every) as run:
        train(run, args, rank, world, strategy)


if __name__ == "__main__":
    main()
