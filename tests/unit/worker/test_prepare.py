"""A job prepared whole; and ten processes that want the same things at once."""

from __future__ import annotations

import hashlib
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
from plain_store import PlainStore
from wheel import make_wheel

import hostler
from hostler.errors import PrepareError
from hostler.records import layout
from hostler.spec.job import DataItem, Job, PythonEnv, Source, to_json
from hostler.worker.prepare.prepare import Preparations, PreparedJob, dependence, environment, prepare
from hostler.worker.prepare.python_env import PathEnv

HERE = os.pathsep.join([str(Path(hostler.__file__).parents[1]), str(Path(__file__).parent)])
SETUP = "echo x >> $COUNTS/setup; python -c 'import tinypkg; print(tinypkg.VALUE)' > built"
DATA = "echo x >> $COUNTS/data; mkdir out; cp built out/"


def tar(folder: Path, mode: str) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:
        archive.add(folder, ".")
    return out.getvalue()


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """Code, requirements, setup and two kinds of data, all in a store; each making leaves a mark."""
    project = tmp_path / "project"
    marks = tmp_path / "counts"
    marks.mkdir()
    make_wheel(project / "wheels")
    (project / "requirements.txt").write_text("--no-index\n--find-links wheels\ntinypkg\n")
    (project / "sub").mkdir()
    code, data = tar(project, "w:gz"), tar(project / "wheels", "w")
    shas = [hashlib.sha256(blob).hexdigest() for blob in (code, data)]
    store = PlainStore(tmp_path / "store")
    store.put(layout.code(shas[0]), code)
    store.put(layout.data(shas[1]), data)
    return Job(
        name="demo",
        command=("python", "-c", "1"),
        python=PythonEnv(requirements="requirements.txt"),
        env={"COUNTS": str(marks)},
        setup=("bash", "-c", SETUP),
        data=(DataItem("wheels", blob=shas[1]), DataItem("made", run=("bash", "-c", DATA), out="out")),
        source=Source(snapshot=shas[0]),
    )


def test_a_job_is_prepared_whole(tmp_path: Path, job: Job) -> None:
    said: list[str] = []
    store = PlainStore(tmp_path / "store")
    done = prepare(job, store, tmp_path / "cache", tmp_path / "run", said.append)
    assert done.cwd == tmp_path / "run" / "work" and (done.cwd / "built").read_text() == "1\n"
    assert (done.data / "made" / "built").read_text() == "1\n"
    assert os.listdir(done.data / "wheels") == ["tinypkg-1.0-py3-none-any.whl"]
    assert done.env["COUNTS"] == job.env["COUNTS"]
    path = done.env["PATH"]
    words = ["python", "-c", "import tinypkg"]
    subprocess.run(words, cwd=done.cwd, env={**os.environ, **done.env, "PATH": path}, check=True)
    assert said == [
        "installing requirements.txt",
        "running setup",
        "unpacking data 'wheels'",
        "preparing data 'made'",
    ]


def test_the_command_starts_where_the_job_says(tmp_path: Path, job: Job) -> None:
    plain = replace(job, setup=(), data=(), python=PythonEnv(), cwd="sub")
    done = prepare(
        plain, PlainStore(tmp_path / "store"), tmp_path / "cache", tmp_path / "run", lambda _: None
    )
    assert done.cwd == tmp_path / "run" / "work" / "sub" and os.listdir(done.data) == []


@pytest.mark.parametrize("cwd", ["none", "../..", "/etc"])
def test_working_directory_outside_the_code_is_refused(tmp_path: Path, job: Job, cwd: str) -> None:
    wrong = replace(job, setup=(), data=(), python=PythonEnv(), cwd=cwd)
    with pytest.raises(PrepareError, match="working directory"):
        prepare(wrong, PlainStore(tmp_path / "store"), tmp_path / "cache", tmp_path / "run", lambda _: None)


def test_python_of_the_job_comes_first_despite_its_own_path() -> None:
    found = environment({"PATH": "/theirs"}, PathEnv(["/ours"], {"VIRTUAL_ENV": "/v"}))
    assert found["PATH"] == "/ours:/theirs" and found["VIRTUAL_ENV"] == "/v"


WORKER = """
import json, sys
from pathlib import Path
from hostler.spec.job import from_json
from hostler.worker.prepare.prepare import prepare
from plain_store import PlainStore
root, n = Path(sys.argv[1]), sys.argv[2]
job = from_json(json.loads(Path(root, "job.json").read_text()))
sys.stdin.readline()
done = prepare(job, PlainStore(root / "store"), root / "cache", root / ("run" + n), print)
assert (done.cwd / "built").read_text() == "1\\n" and (done.data / "made" / "built").read_text() == "1\\n"
"""


def start(root: Path, job: Job, n: int) -> subprocess.Popen[bytes]:
    if not (root / "job.json").exists():  # others read it by now
        (root / "job.json").write_text(json.dumps(to_json(job)))
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, str(root), str(n)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "PYTHONPATH": HERE},
        start_new_session=True,
    )


def test_ten_processes_at_once_make_each_thing_once(tmp_path: Path, job: Job) -> None:
    workers = [start(tmp_path, job, n) for n in range(10)]
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write(b"go\n")
        worker.stdin.flush()
    said = [worker.communicate(timeout=200)[0].decode() for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * 10, said
    assert {path.name: path.read_text() for path in (tmp_path / "counts").iterdir()} == {
        "setup": "x\n",
        "data": "x\n",
    }
    assert sorted((tmp_path / "store" / "downloads.log").read_text().split()) == sorted(
        [layout.code(job.source.snapshot or ""), layout.data(job.data[0].blob or "")]
    )
    assert "\n".join(said).splitlines().count("installing requirements.txt") == 1


def test_setup_of_a_killed_worker_is_done_by_the_next(tmp_path: Path, job: Job) -> None:
    once = "if mkdir $COUNTS/killed; then echo here > $COUNTS/pipe; sleep 600; fi; echo 1 > built; mkdir out"
    slow = replace(job, python=PythonEnv(), setup=("bash", "-c", once), data=job.data[1:])
    os.mkfifo(tmp_path / "counts" / "pipe")
    first = start(tmp_path, slow, 0)
    assert first.stdin is not None and first.stdout is not None
    first.stdin.write(b"go\n")
    first.stdin.flush()
    assert (tmp_path / "counts" / "pipe").read_text() == "here\n"
    os.killpg(first.pid, signal.SIGKILL)
    first.communicate()
    slow = replace(slow, data=(replace(slow.data[0], run=("bash", "-c", "cp built out/")),))
    second = start(tmp_path, slow, 1)
    said = second.communicate(b"go\n", timeout=60)[0].decode()
    assert second.returncode == 0, said


def test_recently_ready_environment_is_not_looked_for_again(tmp_path: Path) -> None:
    now, made = [10.0], []
    job, known = Job(name="a", command=("true",)), Preparations(lambda: now[0])
    code = tmp_path / "code"
    code.mkdir()

    def make() -> PreparedJob:
        made.append(now[0])
        return PreparedJob(dependence(job), 0.0, code, {}, {}, "python")

    def ask(one: Job = job) -> int:
        known.ready(one, make)
        return len(made)

    assert (ask(), ask()) == (1, 1)
    now[0] += 1.5
    assert (ask(), ask()) == (2, 2)
    assert ask(replace(job, command=("false",))) == 2, "its runs differ in more than what is prepared"
    for other in (replace(job, cwd="sub"), replace(job, secrets=("KEY",)), replace(job, env={"A": "1"})):
        before = len(made)
        assert ask(other) == before + 1, "another preparation"
    now[0] += 1.5
    before = ask()
    code.rmdir()
    assert ask() == before + 1, "its code is gone"
