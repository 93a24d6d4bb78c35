"""Sweeps through real workers: halting, slots, what does not fit, and everything made once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from hostler.attempt.nvml import GPU
from hostler.records.run import control
from hostler.records.sweep import sweeps
from hostler.spec.job import DataItem, Limits, PythonEnv, Resources
from hostler.worker.claim.room import GpuLocks, Room
from hostler.worker.claim.slots import Device, Offer
from worker_world import World, until

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "worker"))
from wheel import make_wheel

AT_ONCE = 4  # workers that need the same things at one moment
TWENTY = [{"n": n} for n in range(20)]
FAILING = "import sys; raise ValueError(f'no data at /x/{sys.argv[2]}')"


def states(world: World, name: str) -> list[str]:
    job = sweeps.load(world.store, name)
    return [world.state(job, n).state for n in range(job.count)]


def test_repeated_error_halts_the_sweep_and_lifting_resumes_it(world: World) -> None:
    job = world.submit(FAILING, runs=TWENTY, retries=0, limits=Limits(failures=4))
    assert world.work() == 0
    assert sorted(states(world, "job")).count("failed") == 4 and states(world, "job").count("queued") == 16
    halt = sweeps.halted(world.store, job.name)
    assert halt and "the same error 4 times in a row: ValueError: no data at" in halt["why"]
    assert any("halted: job" in line for line in world.said)
    world.work()
    assert states(world, "job").count("failed") == 4, "nothing is taken while it is halted"
    sweeps.lift(world.store, job.name)
    world.work()
    assert states(world, "job").count("failed") == 8, "and it is counted anew"


def test_different_errors_or_a_success_between_do_not_halt(world: World) -> None:
    script = """
import sys
n = int(sys.argv[2])
if n % 3 == 0: raise ValueError('x')
if n % 3 == 1: raise KeyError('y')
"""
    world.submit(script, runs=TWENTY[:9], retries=0, limits=Limits(failures=4))
    world.work()
    assert sorted(states(world, "job")) == ["done"] * 3 + ["failed"] * 6


def test_one_run_tried_again_by_hand_never_halts_its_sweep(world: World) -> None:
    job = world.submit(FAILING, runs=TWENTY[:1], retries=0, limits=Limits(failures=2))
    for _ in range(4):
        world.work()
        control.retry(world.store, world.key(job))
    assert sweeps.halted(world.store, job.name) is None


# Waits until as many runs as argv[4] says are there at once.
TOGETHER = """
import os, pathlib, sys, time
marks = pathlib.Path(os.environ["MARKS"])
(marks / f"up-{sys.argv[2]}").write_text(os.environ.get("CUDA_VISIBLE_DEVICES", ""))
deadline = time.monotonic() + 10
while len(list(marks.glob("up-*"))) < int(sys.argv[4]):
    assert time.monotonic() < deadline, "alone"
    time.sleep(0.02)
"""


def test_runs_with_a_cpu_each_fill_the_machine_at_once(world: World) -> None:
    runs = [{"n": n, "together": 3} for n in range(3)]
    world.submit(TOGETHER, runs=runs, resources=Resources(cpus=1), retries=0)
    world.work(room=Room(Offer(cpus=3, memory=1 << 40)))
    assert states(world, "job") == ["done"] * 3


def test_slots_bound_how_many_run_at_once(world: World) -> None:
    script = """
import os, pathlib, sys, time
mark = pathlib.Path(os.environ["MARKS"], "one"); mark.touch(exist_ok=False)
time.sleep(0.1); mark.unlink()
"""
    world.submit(script, runs=TWENTY[:3], retries=0)
    world.work(room=Room(Offer(cpus=64, memory=1 << 40, slots=1)))
    assert states(world, "job") == ["done"] * 3
    world.submit(TOGETHER, name="two", runs=[{"n": n, "together": 2} for n in range(2)], retries=0)
    world.work(room=Room(Offer(cpus=64, memory=1 << 40, slots=2)))
    assert states(world, "two") == ["done"] * 2


def gpus(*used: int) -> list[GPU]:
    return [
        GPU(
            n,
            f"GPU-{n}",
            memory_total=80 << 30,
            memory_used=amount,
            processes=((77, amount),) if amount else (),
        )
        for n, amount in enumerate(used)
    ]


def test_two_workers_never_use_one_gpu_together(world: World, tmp_path: Path) -> None:
    script = """
import os, pathlib, sys, time
marks, gpu = pathlib.Path(os.environ["MARKS"]), os.environ["CUDA_VISIBLE_DEVICES"]
mark = marks / f"on-{gpu}"; mark.touch(exist_ok=False)
(marks / f"used-{gpu}-{sys.argv[2]}").touch()
time.sleep(0.3); mark.unlink()
"""
    world.submit(script, runs=TWENTY[:6], resources=Resources(gpus=1), retries=0)
    offer = Offer(cpus=64, memory=1 << 40, gpus=(Device("GPU-0", 80 << 30), Device("GPU-1", 80 << 30)))
    rooms = [Room(offer, GpuLocks(tmp_path / "locks"), lambda: gpus(0, 0)) for _ in range(2)]
    with world.working(room=rooms[0]), world.working(room=rooms[1]):
        until(lambda: all(state == "done" for state in states(world, "job")))
    assert {mark.name.split("-")[2] for mark in world.mark("").glob("used-*")} == {"0", "1"}


def test_gpu_used_by_a_stranger_is_left_alone_and_named(world: World, tmp_path: Path) -> None:
    world.submit(TOGETHER, runs=[{"n": 0, "together": 1}], resources=Resources(gpus=1), retries=0)
    offer = Offer(cpus=64, memory=1 << 40, gpus=(Device("GPU-0", 80 << 30), Device("GPU-1", 80 << 30)))
    world.work(room=Room(offer, GpuLocks(tmp_path / "locks"), lambda: gpus(9 << 30, 0)))
    assert world.mark("up-0").read_text() == "GPU-1"
    assert [line for line in world.said if "GPU 0 (GPU-0) is left alone" in line and "process 77" in line]


def test_worker_leaves_with_0_and_says_what_never_fits(world: World) -> None:
    world.submit("", name="wide", resources=Resources(cpus=99))
    world.submit("", name="gpu", resources=Resources(gpus=1))
    assert world.work(room=Room(Offer(cpus=2, memory=1 << 40))) == 0
    last = world.said[-1]
    assert "2 do not fit this machine" in last and "99 CPUs, this machine offers 2" in last
    assert "1 GPU, this machine offers 0" in last
    assert states(world, "wide") == states(world, "gpu") == ["queued"]


def test_workers_at_once_make_packages_setup_and_data_once(world: World) -> None:
    make_wheel(world.root / "project" / "wheels")
    world.file("requirements.txt", "--no-index\n--find-links wheels\ntinypkg\n")
    setup = "echo x >> $MARKS/setup; python -c 'import tinypkg; print(tinypkg.VALUE)' > built; sleep 0.3"
    data = "echo x >> $MARKS/data; mkdir out; cp built out/; sleep 0.3"
    script = """
import os, pathlib, tinypkg
assert pathlib.Path(os.environ["HOSTLER_DATA"], "made", "built").read_text() == "1\\n"
assert pathlib.Path("built").read_text() == "1\\n"
"""
    world.submit(
        script,
        runs=TWENTY[:AT_ONCE],
        command=("python", "train.py"),
        python=PythonEnv(requirements="requirements.txt"),
        setup=("bash", "-c", setup),
        data=(DataItem("made", run=("bash", "-c", data), out="out"),),
        retries=0,
        style="none",
    )
    environ = {**os.environ, "HOSTLER_CACHE": str(world.cache), "HOSTLER_WAIT_MIN": "0.05"}
    command = [
        sys.executable,
        "-m",
        "hostler.worker",
        str(world.root / "store"),
        "--no-parent",
        "--runs",
        "1",
    ]
    workers = [
        subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for _ in range(AT_ONCE)
    ]
    said = [worker.communicate(timeout=250)[0].decode() for worker in workers]
    assert states(world, "job") == ["done"] * AT_ONCE, said
    assert world.mark("setup").read_text() == world.mark("data").read_text() == "x\n"
    made = [path for path in (world.cache / "envs").iterdir() if path.is_dir() and not path.is_symlink()]
    assert len(made) == 1


def test_a_worker_refuses_a_full_disk_in_one_line(world: World) -> None:
    environ = {**os.environ, "HOSTLER_DISK_MIN": "1e18", "HOSTLER_CACHE": str(world.cache)}
    command = [sys.executable, "-m", "hostler.worker", str(world.root / "store")]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1 and "free for the cache" in done.stderr


def test_a_mistyped_store_is_refused_and_not_made(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "hostler.worker", str(tmp_path / "stroe")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and "no store at" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_invalid_ports_are_reported_before_a_run_is_taken(world: World) -> None:
    job = world.submit("print(1)")
    given = {**os.environ, "HOSTLER_PORTS": "abc", "HOSTLER_CACHE": str(world.cache)}
    done = subprocess.run(
        [sys.executable, "-m", "hostler", "worker", str(world.store.url)],
        env=given, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 2 and "HOSTLER_PORTS='abc' is not a range of ports" in done.stderr, done.stderr
    assert world.state(job).state == "queued"
