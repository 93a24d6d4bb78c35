"""TensorFlow and JAX, each with two workers: they find each other by the variables, train, and exit."""

from __future__ import annotations

from pathlib import Path

import pytest

from gang_world import gang, needs, told, work_together
from worker_world import World

TENSORFLOW = """
import json, os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
import numpy as np
import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
x = np.linspace(-1, 1, 64, dtype="float32")[:, None]
data = tf.data.Dataset.from_tensor_slices((x, 3 * x + 1)).batch(16).repeat()
with strategy.scope():
    weight, bias = tf.Variable([[0.0]]), tf.Variable([0.0])

@tf.function
def step(iterator):
    def one(batch):
        given, wanted = batch
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((given @ weight + bias - wanted) ** 2)
        context = tf.distribute.get_replica_context()
        for variable, grad in zip((weight, bias), tape.gradient(loss, (weight, bias))):
            variable.assign_sub(0.3 * context.all_reduce("mean", grad))
        return loss
    return strategy.reduce("mean", strategy.run(one, args=(next(iterator),)), axis=None)

iterator = iter(strategy.experimental_distribute_dataset(data))
for n in range(60):
    loss = step(iterator)
task = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
found = [strategy.num_replicas_in_sync, task, round(float(weight.numpy()[0, 0]), 2)]
os.write(1, f"found {json.dumps(found)}\\n".encode())
"""
JAX = """
import json, os
import jax

jax.distributed.initialize(
    os.environ["JAX_COORDINATOR_ADDRESS"],
    int(os.environ["JAX_NUM_PROCESSES"]),
    int(os.environ["JAX_PROCESS_ID"]),
)
found = [jax.process_count(), jax.process_index(), jax.device_count()]
os.write(1, f"found {json.dumps(found)}\\n".encode())
jax.distributed.shutdown()
"""


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "world")


@pytest.mark.timeout(300)
def test_two_workers_train_together_with_tensorflow_and_exit(world: World) -> None:
    needs("tensorflow")
    world.quick(grace=20.0)
    job = world.submit(TENSORFLOW, resources=gang(2), distributed="tensorflow")
    assert work_together(world, 2, 240) == [0, 0]
    assert world.state(job).state == "done", world.log(job)
    assert sorted(told(world, job, "found")) == [[2, 0, 3.0], [2, 1, 3.0]]


@pytest.mark.timeout(300)
def test_two_processes_join_by_jax_distributed_and_exit(world: World) -> None:
    needs("jax")
    world.quick(grace=20.0)
    job = world.submit(JAX, resources=gang(2), distributed="jax")
    assert work_together(world, 2, 240) == [0, 0]
    assert world.state(job).state == "done", world.log(job)
    assert sorted(told(world, job, "found")) == [[2, 0, 2], [2, 1, 2]]
