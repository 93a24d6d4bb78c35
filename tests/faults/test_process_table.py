"""Real processes through Process, each judged by classify."""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hostler import proctable
from hostler.attempt import usage
from hostler.errors import PrepareError
from hostler.worker.process.process import Exit, Process
from hostler.worker.run.failure import classify
from hostler.worker.run.kinds import POLICY

Starter = Callable[..., Process]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A name that breaks whatever passes through a shell."""
    made = tmp_path / "a b'\"\n; echo x ü"
    made.mkdir()
    return made


@pytest.fixture
def start(folder: Path) -> Iterator[Starter]:
    started: list[Process] = []

    def begin(*argv: str, **env: str) -> Process:
        process = Process.start(
            argv, cwd=folder, env={**os.environ, **env}, folder=folder, log=folder / "log"
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        process.close()


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def ended(process: Process) -> Exit:
    found = process.wait(60)
    assert found is not None, "still running"
    return found


def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "did not come true"
        time.sleep(0.01)


CASES = [
    ("done", python("print('fine')")),
    ("error", python("raise ValueError('no')")),
    ("exit-code", python("import sys; sys.exit(3)")),
    ("tempfail", python("import sys; sys.exit(75)")),
    ("import-error", python("import no_such_module")),
    ("syntax", python("def f(:")),
    ("usage", python("import argparse; argparse.ArgumentParser().parse_args(['--x'])")),
    ("crash", python("import ctypes; ctypes.string_at(0)")),
    ("crash", python("import os; os.abort()")),
    ("crash", ["sh", "-c", "sh -c 'kill -SEGV $$'; exit $?"]),
    (
        "memory",
        python("import resource as r; r.setrlimit(r.RLIMIT_AS, (10**9, 10**9)); bytearray(2 * 10**9)"),
    ),
    ("cuda-memory", python("raise RuntimeError('CUDA out of memory. Tried to allocate 20.00 MiB')")),
    ("disk-full", python("open('/dev/full', 'w').write('x' * 10**6)")),
    ("not-found", ["no-such-command"]),
    ("not-found", ["./no-such-script"]),
    ("not-found", ["./not-executable"]),
    ("not-found", ["./no-interpreter"]),
    ("not-found", ["./no-program"]),
    ("not-found", ["/"]),
]


@pytest.mark.parametrize(("kind", "argv"), CASES, ids=[f"{i}-{case[0]}" for i, case in enumerate(CASES)])
def test_a_real_process_is_judged(kind: str, argv: list[str], start: Starter, folder: Path) -> None:
    for name, mode, text in (
        ("not-executable", 0o644, "#!/bin/sh\n"),
        ("no-interpreter", 0o755, "#!/no/such/interpreter\n"),
        ("no-program", 0o755, "just text\n"),
    ):
        (folder / name).write_text(text)
        (folder / name).chmod(mode)
    found = ended(start(*argv))
    verdict = classify(found, (folder / "log").read_text())
    assert verdict.kind == kind, (found, verdict)


def test_each_reason_not_to_start_is_told_apart(start: Starter, folder: Path) -> None:
    (folder / "plain").write_text("#!/bin/sh\n")
    (folder / "script").write_text("#!/no/such/interpreter\n")
    (folder / "script").chmod(0o755)
    assert ended(start("nope")).spawn_error == "command not found: nope"
    assert "not executable" in ended(start("./plain")).spawn_error
    assert "#!/no/such/interpreter" in ended(start("./script")).spawn_error


def test_the_command_is_found_on_the_path_it_was_given(start: Starter, folder: Path) -> None:
    (folder / "mine").write_text("#!/bin/sh\necho $WORD; exit 4\n")
    (folder / "mine").chmod(0o755)
    assert ended(start("mine", PATH=f"{folder}:/usr/bin:/bin", WORD="hello")).code == 4
    assert (folder / "log").read_text() == "hello\n"


def test_arguments_arrive_as_they_are(start: Starter, folder: Path) -> None:
    words = ["a b", "$HOME", "'\"", "new\nline", "ü", "\udcff", ""]
    code = "import os, sys; sys.stdout.buffer.write(b'|'.join(map(os.fsencode, sys.argv[1:])))"
    assert ended(start(*python(code), *words)).code == 0
    assert (folder / "log").read_bytes() == b"|".join(map(os.fsencode, words))


def test_exit_zero_after_a_stop_signal_is_not_finished(start: Starter, folder: Path) -> None:
    code = "import signal as s, sys; s.signal(15, lambda *a: sys.exit(0)); print('up', flush=True); s.pause()"
    process = start(*python(code))
    until(lambda: "up" in (folder / "log").read_text())
    assert process.signal(signal.SIGTERM)
    assert classify(ended(process), "", stop="preempted").kind == "not-finished"


def test_a_signal_reaches_the_children_too(start: Starter, folder: Path) -> None:
    process = start("sh", "-c", "sleep 100 & sleep 101 & wait")
    until(lambda: usage.sample(process.pid).processes == 3)
    assert process.signal(signal.SIGTERM)
    assert ended(process).signal == signal.SIGTERM
    assert process.group.members() == {}
    assert not process.signal(signal.SIGTERM)


def test_a_process_killed_by_a_stranger_is_lost_not_failed(start: Starter) -> None:
    process = start("sleep", "100")
    os.kill(process.pid, signal.SIGKILL)
    verdict = classify(ended(process), "")
    assert (verdict.kind, POLICY[verdict.kind].retry) == ("killed", "lost")


def test_run_starts_with_clean_signals_no_input_and_own_session(start: Starter, folder: Path) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        process = start(
            "sh", "-c", "cat; grep -E 'Sig(Blk|Ign)' /proc/self/status; cat /proc/self/oom_score_adj"
        )
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    assert ended(process).code == 0
    blocked, ignored, score = (line.split()[-1] for line in (folder / "log").read_text().splitlines())
    own = 0b11 << 31  # signals 32 and 33 are glibc's; its posix_spawn, which make uses, leaves them ignored
    assert (int(blocked, 16), int(ignored, 16) & ~own) == (0, 0)
    assert int(score) in (800, 0)  # containers may forbid it


def test_strays_in_sessions_of_their_own_end_with_the_run(start: Starter, folder: Path) -> None:
    process = start("sh", "-c", "setsid sleep 100 & (sleep 101 &) ; sleep 0.2; exit 0")
    assert ended(process).code == 0
    assert process.group.members() == {}


def test_kill_leaves_nothing_and_says_so(start: Starter) -> None:
    process = start("sh", "-c", "trap '' TERM HUP INT; setsid sh -c 'sleep 100; :' & sleep 101; :")
    until(lambda: usage.sample(process.pid, supervisor=process.supervisor).processes >= 4)
    found = process.kill()
    assert found is not None and found.signal == signal.SIGKILL
    assert process.group.members(fresh=True) == {}
    assert process.poll() == process.kill()


def test_kill_works_though_the_supervisor_is_stopped(start: Starter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hostler.worker.process.process.PATIENCE", 0.3)
    process = start("sh", "-c", "sleep 100; :")
    os.kill(process.supervisor, signal.SIGSTOP)
    found = process.kill()
    assert found is not None and found.supervisor_lost
    assert process.group.members(fresh=True) == {}


def test_peak_memory_and_time_are_reported_and_in_the_files(start: Starter, folder: Path) -> None:
    process = start(*python("x = bytearray(80_000_000); import time; time.sleep(0.1)"))
    found = ended(process)
    assert found.max_rss > 80_000_000 and found.seconds >= 0.1
    left = json.loads((folder / "exit.json").read_text())
    assert (left["code"], left["max_rss"]) == (0, found.max_rss)
    begun = json.loads((folder / "process.json").read_text())
    assert (begun["pid"], begun["start"], begun["supervisor"]) == (
        process.pid,
        process.group.start,
        process.supervisor,
    )


def test_process_over_in_a_moment_leaves_no_file(start: Starter, folder: Path) -> None:
    process = start("true")
    assert ended(process).code == 0
    process.close()
    assert sorted(path.name for path in folder.iterdir()) == ["log"]


def test_no_zombie_and_no_descriptor_is_left_behind(start: Starter) -> None:
    def three() -> int:
        gc.collect()  # what other tests left open closes now, not in between
        processes = [start("true") for _ in range(3)]
        for process in processes:
            ended(process)
            process.close()
        return len(os.listdir("/proc/self/fd"))

    before = three()  # the supervisors stay
    assert three() == before
    rows = proctable.table()
    assert not [row for row in rows.values() if row.parent == os.getpid() and not row.alive]


def test_several_threads_may_ask_at_once(start: Starter) -> None:
    process = start("sleep", "0.2")
    seen: list[Exit | None] = []
    threads = [threading.Thread(target=lambda: seen.append(process.wait(60))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(seen)) == 1 and seen[0] is not None and seen[0].code == 0


def test_impossible_process_arguments_are_refused_in_one_line(start: Starter, tmp_path: Path) -> None:
    with pytest.raises(PrepareError, match="zero byte"):
        start("echo", "a\0b")
    with pytest.raises(PrepareError, match="HOSTLER_PARAMS"):
        start("echo", *["x" * 100_000] * 40)
    with pytest.raises(PrepareError, match="does not exist"):
        Process.start(["true"], cwd=tmp_path / "gone", env={}, folder=tmp_path, log=tmp_path / "log")
    with pytest.raises(PrepareError, match="empty"):
        start()


def test_memory_over_the_limit_is_seen_and_sharing_counts_once(start: Starter, folder: Path) -> None:
    code = "import os, time; x = bytearray(60_000_000); os.fork(); os.fork(); print('up', flush=True)"
    code += "; time.sleep(60)"
    process = start(*python(code))
    until(lambda: (folder / "log").read_text().count("up") == 4)
    assert usage.sample(process.pid).rss > 200_000_000
    assert not usage.over_memory(usage.sample(process.pid, limit=150_000_000), 150_000_000)
    assert usage.over_memory(usage.sample(process.pid, limit=50_000_000), 50_000_000)


# Freeing this takes the kernel a tenth of a second and more, in which a killed process is still there.
LARGE = "import os, time; x = bytearray(b'1') * (1 << 30); print(os.getpid(), flush=True); time.sleep(60)"


@pytest.mark.parametrize("wrapped", [False, True], ids=["alone", "under a shell"])
def test_killed_process_is_not_steady_while_it_frees_memory(
    start: Starter, folder: Path, wrapped: bool
) -> None:
    shell = ["sh", "-c", '"$0" -c "$1"; sleep 60', sys.executable, LARGE]
    process = start(*(shell if wrapped else python(LARGE)))
    until(lambda: (folder / "log").read_text().endswith("\n"))
    pid = int((folder / "log").read_text())
    assert process.steady()
    os.kill(pid, signal.SIGKILL)
    seen = list[bool]()
    while (row := proctable.row(pid)) and row.alive:
        seen.append(process.steady())
    assert seen and not any(seen[:-1])  # it may be gone by the time of the last


@pytest.mark.parametrize("wrapped", [False, True], ids=["alone", "under a shell"])
def test_stopped_process_is_steady_only_after_it_continues(
    start: Starter, folder: Path, wrapped: bool
) -> None:
    code = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
    process = start(*(["sh", "-c", '"$0" -c "$1"; true', *python(code)[::2]] if wrapped else python(code)))
    until(lambda: (folder / "log").read_text().endswith("\n"))
    pid = int((folder / "log").read_text())
    os.kill(pid, signal.SIGSTOP)
    until(lambda: not process.steady())
    os.kill(pid, signal.SIGCONT)
    until(process.steady)


def test_the_supervisor_starts_from_a_zip_too(tmp_path: Path) -> None:
    source = Path(sys.modules["hostler"].__file__ or "").parent
    with zipfile.ZipFile(tmp_path / "hostler.zip", "w") as bundle:
        for file in source.rglob("*.py"):
            bundle.write(file, file.relative_to(source.parent))
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from pathlib import Path; from hostler.worker.process.process import Process\n"
        "here = Path(sys.argv[2]); assert '.zip' in sys.modules['hostler'].__file__\n"
        "process = Process.start(['sh', '-c', 'exit 7'], cwd=here, env={}, folder=here, log=here / 'log')\n"
        "print(process.wait(60).code)"
    )
    process = Process.start(
        [*python(code), str(tmp_path / "hostler.zip"), str(tmp_path)],
        cwd=tmp_path,
        env={"PATH": os.defpath},
        folder=tmp_path,
        log=tmp_path / "out",
    )
    assert ended(process).code == 0
    assert (tmp_path / "out").read_text() == "7\n"
    process.close()
