"""A script started from a warm parent sees what it would see in a process of its own, and dies like one."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hostler import proctable
from hostler.worker.prepare import packages
from hostler.worker.process import spawning
from hostler.worker.process.process import Exit, Process
from hostler.worker.process.warm import KEPT, RECENT, Warmth, imports, key_of, script_of

# Everything a script can observe of its process, as JSON; what must differ between any two is under "own".
SCRIPT = """
import argparse, json, random, sys
import os.path, signal, threading, time, gc
from decimal import Decimal, getcontext
import faulthandler, locale, warnings
import logging, multiprocessing, tempfile

def observed():
    own = {"random": random.random(), "pid": os.getpid(), "urandom": os.urandom(4).hex()}
    own["authkey"] = bytes(multiprocessing.current_process().authkey).hex()
    status = dict(line.split(":", 1) for line in open("/proc/self/status").read().splitlines())
    masks = {k: status[k].strip() for k in ("SigBlk", "SigIgn", "SigCgt", "Threads", "Umask", "NoNewPrivs")}
    main = sys.modules["__main__"]
    umask = os.umask(0)
    os.umask(umask)
    seen = {
        "modules": sorted(sys.modules), "globals": sorted(GLOBALS), "argv": sys.argv, "masks": masks,
        "main": {k: repr(getattr(main, k)).partition(" at 0x")[0] for k in GLOBALS if k.startswith("__")},
        "loader": [main.__loader__.name, main.__loader__.path],
        "builtins": main.__builtins__ is sys.modules["builtins"], "is_main": main.__dict__ is globals(),
        "orig_argv": getattr(sys, "orig_argv", None), "executable": sys.executable, "prefix": sys.prefix,
        "cwd": os.getcwd(), "path": sys.path, "flags": repr(sys.flags), "warn": sys.warnoptions,
        "environ": dict(os.environ), "umask": umask, "pgid": os.getpgid(0) == os.getpid(),
        "sid": os.getsid(0) == os.getpid(), "threads": [t.name for t in threading.enumerate()],
        "main_thread": threading.main_thread() is threading.current_thread(),
        "fds": sorted(int(n) for n in os.listdir("/proc/self/fd"))[:-1],
        "targets": [os.readlink(f"/proc/self/fd/{n}") for n in range(3)],
        "handlers": [repr(signal.getsignal(n)) for n in range(1, signal.NSIG)],
        "stdin": sys.stdin.read(), "excepthook": sys.excepthook is sys.__excepthook__,
        "streams": [[s.encoding, s.errors, s.line_buffering, s.write_through, s.seekable(), s.name, s.mode,
                     type(s.buffer).__name__] for s in (sys.stdout, sys.stderr)],
        "gc": [gc.isenabled(), gc.get_threshold()],
        "oom": open("/proc/self/oom_score_adj").read(),
        "exc": repr(sys.exc_info()), "recursion": sys.getrecursionlimit(), "tmp": tempfile.gettempdir(),
        "logging": abs(logging.makeLogRecord({}).relativeCreated) < 60000, "nice": os.nice(0),
        "limits": open("/proc/self/limits").read(), "original": multiprocessing.process.ORIGINAL_DIR,
        "filters": repr(warnings.filters), "handlers_of_logs": repr(logging.root.handlers),
        "level": logging.root.level, "named": sorted(logging.root.manager.loggerDict),
        "affinity": sorted(os.sched_getaffinity(0)), "timer": signal.getitimer(signal.ITIMER_REAL),
        "bytecode": sys.dont_write_bytecode, "faults": faulthandler.is_enabled(),
        "locale": locale.setlocale(locale.LC_CTYPE),
        "digits": getcontext().prec, "methods": [multiprocessing.get_start_method(True)],
        "policy": [len(sys.path_hooks), sys.getswitchinterval(), repr(sys.getprofile()), sys.pycache_prefix],
        "process": [multiprocessing.current_process().name, multiprocessing.active_children()],
        "young": time.process_time() < 5, "tracing": repr(sys.gettrace()), "hooks": len(sys.meta_path),
    }
    return {"own": own, "seen": seen}

GLOBALS = [k for k in globals() if k.startswith("__")]
GLOBALS += [k for k in globals() if not k.startswith("__")]
with open(os.environ["REPORT"], "w") as file:
    json.dump(observed(), file, indent=1)
"""


class Scene:
    """One project's folder; each run has a copy of it, at the same place."""

    def __init__(self, root: Path, python: str = sys.executable) -> None:
        self.project, self.root, self.python = root / "run" / "work", root, python
        self.project.mkdir(parents=True)
        self.warmth = Warmth(root / "warm", wait=True)
        self.started: list[Process] = []

    def script(self, text: str, name: str = "train.py") -> None:
        (self.project / name).write_text(text)

    def env(self, **more: str) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": "", "PYTHONUNBUFFERED": "1", **more}

    def start(
        self, *words: str, warm: bool = True, strict: bool = False, name: str = "train.py", **more: str
    ) -> Process:
        (self.root / "log").unlink(missing_ok=True)
        argv = [self.python, name, *words]
        given: dict[str, Any] = {"cwd": self.project, "folder": self.root, "log": self.root / "log"}
        if warm:
            process = self.warmth.start(argv, env=self.env(**more), code=["c"], strict=strict, **given)
        else:
            process = Process.start(argv, env=self.env(**more), **given)
        self.started.append(process)
        return process

    def run(self, *words: str, **given: Any) -> tuple[Exit, str]:
        found = self.start(*words, **given).wait(60)
        assert found is not None, "still running"
        return found, re.sub(" at 0x[0-9a-f]+", "", (self.root / "log").read_text())

    def get_warm(self, *words: str, **given: Any) -> None:
        """The first run, after which there is a parent."""
        self.run(*words, **given)
        assert self.warmth.refusals() == []

    def close(self) -> None:
        for process in self.started:
            process.close()
        self.warmth.close()


@pytest.fixture
def quiet_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """No folder on Python's path but its own: one that changes meanwhile would end a parent."""
    if os.environ.get("PYTHONPATH"):
        monkeypatch.delenv("PYTHONPATH")
        monkeypatch.setattr(packages, "_HELD", {})


@pytest.fixture
def scene(tmp_path: Path, quiet_path: None) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    made.close()


def is_warm(process: Process) -> bool:
    """Whether the process is a fork of a parent, not a program of its own."""
    words = Path(f"/proc/{process.pid}/cmdline").read_bytes().split(b"\0")
    return any(word.endswith(b"/warm_parent.py") for word in words)


def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "did not come true"
        time.sleep(0.01)


def report(scene: Scene, *, warm: bool) -> dict[str, Any]:
    place = scene.root / "report.json"
    exit, log = scene.run("--lr", "0.1", "a b", warm=warm, REPORT=str(place), HOSTLER_RUN=f"run-{warm}")
    assert exit.code == 0, log
    found = json.loads(place.read_text())
    found["seen"]["environ"].pop("HOSTLER_MARK")
    assert found["seen"]["environ"].pop("HOSTLER_RUN") == f"run-{warm}"
    return dict(found)


def test_a_script_sees_no_difference_between_warm_and_fresh(scene: Scene) -> None:
    scene.script(SCRIPT)
    scene.get_warm(REPORT=str(scene.root / "report.json"))
    fresh, warm, again = report(scene, warm=False), report(scene, warm=True), report(scene, warm=True)
    for what, value in fresh["seen"].items():
        assert warm["seen"][what] == value, what
    assert again["seen"] == warm["seen"]
    for what, value in warm["own"].items():
        assert again["own"][what] != value, what


def test_neither_is_deaf_because_its_worker_is(scene: Scene) -> None:
    deaf = (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
    before = [signal.signal(number, signal.SIG_IGN) for number in deaf]
    try:
        scene.script(SCRIPT)
        scene.get_warm(REPORT=str(scene.root / "report.json"))
        fresh, warm = report(scene, warm=False), report(scene, warm=True)
    finally:
        for number, handler in zip(deaf, before, strict=True):
            signal.signal(number, handler)
    assert warm["seen"]["masks"] == fresh["seen"]["masks"]
    assert int(fresh["seen"]["masks"]["SigIgn"], 16) & 0b111 == 0


SLEEPS = "import time, json\nprint('up')\ntime.sleep(100)\n"


def test_second_run_is_a_fork_and_the_first_is_not(scene: Scene) -> None:
    scene.script(SLEEPS)
    first = scene.start()
    assert not is_warm(first)
    first.kill()
    second, third = scene.start(), scene.start()
    assert is_warm(second) and is_warm(third) and second.pid != third.pid
    assert not is_warm(scene.start(OMP_NUM_THREADS="3")), "another environment is another parent's"


def test_warm_run_dies_with_its_supervisor_and_with_its_lifeline(scene: Scene) -> None:
    scene.script(
        "import os, time, subprocess\nos.fork()\n"
        "subprocess.Popen(['sleep', '99'], start_new_session=True)\ntime.sleep(99)\n"
    )
    scene.start().kill()
    killed = scene.start()
    assert is_warm(killed)
    until(lambda: len(killed.group.members()) == 5)
    assert killed.kill() == killed.poll() and killed.group.members(fresh=True) == {}
    lost = scene.start()
    assert is_warm(lost)
    until(lambda: len(lost.group.members()) == 5)
    os.kill(lost.supervisor, signal.SIGKILL)
    found = lost.wait(60)
    assert found is not None and found.supervisor_lost and lost.group.members(fresh=True) == {}


def test_signals_reach_it(scene: Scene) -> None:
    scene.script(SLEEPS)
    scene.start().kill()
    for number in (signal.SIGTERM, signal.SIGUSR1):
        process = scene.start()
        until(lambda: "up" in (scene.root / "log").read_text())
        assert is_warm(process) and process.signal(number)
        found = process.wait(60)
        assert found is not None and found.signal == number


def test_killed_parent_harms_no_run_and_next_one_is_fresh(scene: Scene) -> None:
    go = scene.root / "go"
    scene.script(f"import os, time\nwhile not os.path.exists({str(go)!r}): time.sleep(0.02)\n")
    go.touch()
    scene.get_warm()
    go.unlink()
    [entry] = scene.warmth._entries.values()
    assert entry.pool is not None
    running = scene.start()
    os.kill(entry.pool.spawner.pid, signal.SIGKILL)
    assert is_warm(running)
    after = scene.start()
    assert not is_warm(after)
    go.touch()
    for process in (running, after):
        found = process.wait(60)
        assert found is not None and found.code == 0


ENDS = {
    "done": "print('fine')",
    "exit-3": "import sys\nsys.exit(3)",
    "exit-text": "import sys\nsys.exit('because')",
    "exit-none": "raise SystemExit",
    "hard-exit": "import os\nos._exit(9)",
    "error": "def f():\n    raise ValueError('no')\nf()",
    "chain": "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise KeyError('x') from e",
    "syntax": "x = 1\ndef f(:\n",
    "interrupt": "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(5)",
    "abort": "import os\nos.abort()",
    "atexit": "import atexit, sys\natexit.register(print, 'bye')\nprint('hello')\nsys.exit(4)",
    "thread": "import threading, time\n"
    "threading.Thread(target=lambda: (time.sleep(0.1), print('late'))).start()",
    "hook": "import sys\n"
    "sys.excepthook = lambda *a: print('hook', a[0].__name__, a[2].tb_frame.f_code.co_name)\n1 / 0",
    "bad-hook": "import sys\ndef hook(*a): raise KeyError('of the hook')\nsys.excepthook = hook\n1 / 0",
    "import": "import no_such_module_at_all",
    "atexit-order": "import atexit, threading, time\nfor n in range(3): atexit.register(print, n)\n"
    "threading.Thread(target=lambda: (time.sleep(0.1), print('thread'))).start()\nprint('main')",
    "logging": "import logging\nlogging.basicConfig()\nlogging.warning('here')\n"
    "logging.getLogger('a').error('there')",
    "warning": "import warnings\nwarnings.warn('mind')\nwarnings.warn('mind')",
    "cut": "import sys\nsys.stdout.write('no end')",
    "spawn-pool": "import concurrent.futures as c, multiprocessing as m\ndef f(x): return x * 2\n"
    "if __name__ == '__main__':\n"
    "    with c.ProcessPoolExecutor(2, m.get_context('spawn')) as p: print(list(p.map(f, [1, 2, 3])))",
    "signal": "import os, signal\nsignal.signal(signal.SIGTERM, lambda *a: print('caught'))\n"
    "os.kill(os.getpid(), signal.SIGTERM)\nprint('after')",
    "bad-signal": "import os, signal, time\ndef caught(*a): raise ValueError('caught')\n"
    "signal.signal(signal.SIGTERM, caught)\nos.kill(os.getpid(), signal.SIGTERM)\ntime.sleep(5)",
    "recursion": "def f(): f()\ntry: f()\nexcept RecursionError as e: print(e)",
    "main-import": "import __main__, sys\nX = 5\nprint(__main__.X, __main__ is sys.modules['__main__'])",
    "subprocess": "import subprocess, sys\nprint(subprocess.run([sys.executable, '-c', 'import sys; "
    "print(sys.argv, len(sys.path))'], capture_output=True, text=True).stdout)",
    "stderr": "import sys\nsys.stderr.write('one')\nsys.stdout.write('two')\nsys.stderr.write('three')",
    "unclosed": "import os\nf = open(os.path.join(os.path.dirname(os.environ['REPORT']), 'kept'), 'w')\n"
    "f.write('x' * 10)\nclass A:\n    def __del__(self): print('gone')\n_a = A()\nb = [A()]\nb.append(b)",
    "finalize": "import weakref\nclass A: pass\na = A()\nweakref.finalize(a, print, 'finalized')\n"
    "b = A()\nweakref.finalize(b, print, 'early')\ndel b",
    "del-writes": "import io, os, signal\nsignal.signal(signal.SIGUSR1, lambda *a: None)\n"
    "place = os.path.join(os.path.dirname(os.environ['REPORT']), 'kept')\n"
    "class A:\n    def __init__(self, word): self.word = word\n"
    "    def __del__(self): print(self.word, file=io.open(place, 'a'))\n"
    "a, _a, b = A('name'), A('private'), [A('cycle')]\nb.append(b)",
    "bad-thread": "import threading\nthreading.Thread(target=lambda: 1 / 0).start()",
    "file-in-cycle": "import os\nplace = os.path.join(os.path.dirname(os.environ['REPORT']), 'kept')\n"
    "x = [open(place, 'w')]\nx[0].write('y' * 10)\nx.append(x)",
    "child": "import subprocess, sys\n"
    "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(9); print(5)'])",
    "closed": "import sys\nprint('x')\nsys.stdout.close()",
    "exit-256": "import sys\nsys.exit(256)",
    "exit-minus": "import sys\nsys.exit(-1)",
    "exit-true": "import sys\nsys.exit(True)",
    "bad-atexit": "import atexit\natexit.register(lambda: 1 / 0)",
    "daemon": "import threading, time\nthreading.Thread(target=time.sleep, args=(9,), daemon=True).start()",
    "pickle": "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))) is A)",
    "future": "from __future__ import annotations\nx: NoSuch = 1\nprint(__annotations__)",
    "spawn": "import multiprocessing as m\ndef f(x): return x * 2\n"
    "if __name__ == '__main__':\n    with m.get_context('spawn').Pool(1) as p: print(p.map(f, [1, 2]))",
    "fork": "import multiprocessing as m\ndef f(q): q.put(5)\nc = m.get_context('fork')\n"
    "q = c.Queue()\np = c.Process(target=f, args=(q,))\np.start()\nprint(q.get())\np.join()",
    "late-module": "import beside, sys\nclass A:\n    def __del__(self): print('of beside')\nbeside.a = A()\n"
    "import json\ndel sys.modules['json']\nimport json\n"
    "for name in list(sys.modules)[::-1]:\n"
    "    if not name.startswith(('_', 'json', 'beside')): break\n"
    "sys.modules[name] = sys.modules.pop(name)",
    "own-table": "import beside, sys, types\nclass A:\n    def __del__(self): print('gone')\n"
    "beside.a = A()\nsys.modules = types.MappingProxyType(dict(sys.modules))\nprint('here')",
    "neighbour": "import beside\nprint(beside.WORD, beside.__file__)",
    "docstring": "'''said'''\nprint(__doc__, __name__, __file__, __spec__)",
    "inspect": "import inspect\ndef f(): return 1\nprint(inspect.getsource(f))",
}


@pytest.mark.parametrize("name", ENDS)
def test_it_ends_as_a_fresh_one_does(scene: Scene, name: str) -> None:
    scene.script("WORD = 'here'\n", "beside.py")
    scene.script(ENDS[name])
    kept = scene.root / "kept"
    more = {"REPORT": str(scene.root / "report")}
    fresh = scene.run(**more)
    left = kept.read_text() if kept.exists() else None
    pools = [entry.pool for entry in scene.warmth._entries.values()]
    kept.unlink(missing_ok=True)
    warm = scene.run(**more)
    assert (kept.read_text() if kept.exists() else None) == left
    if name != "import":
        assert pools[0] is not None, scene.warmth.refusals()
    assert (warm[0].code, warm[0].signal, warm[1]) == (fresh[0].code, fresh[0].signal, fresh[1])


REFUSED = {
    "an import that prints": ("import noisy", "prints"),
    "an import that starts a thread": ("import busy", "thread"),
    "an import that keeps a file open": ("import holds", "files open"),
    "a module that is not there": ("import no_such_module_at_all", "no_such_module"),
    "a name that is the project's, too": ("import uses_mine", "name of the project"),
    "a module from elsewhere": ("import elsewhere", "outside"),
    "an import that initialises CUDA": ("import torch", "CUDA"),
}
MODULES = {
    "noisy": "print('hello')",
    "busy": "import threading, time\nthreading.Thread(target=time.sleep, args=(9,), daemon=True).start()",
    "holds": "import os\nf = os.open('/dev/null', os.O_RDONLY)",
    "uses_mine": "import colorsys",
    "elsewhere": "",
    "torch": "class cuda:\n    is_initialized = staticmethod(lambda: True)",
}


@pytest.fixture(scope="module")
def venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the modules that are in doubt, one of them outside of it, in `away`."""
    made = tmp_path_factory.mktemp("doubts") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(made)], check=True)
    [site] = made.glob("lib/python*/site-packages")
    away = made.with_name("away")
    away.mkdir()
    for name, text in MODULES.items():
        ((away if name == "elsewhere" else site) / f"{name}.py").write_text(text)
    return made


@pytest.mark.parametrize("case", REFUSED)
def test_in_doubt_a_run_is_fresh(scene: Scene, venv: Path, case: str) -> None:
    source, why = REFUSED[case]
    scene.script("", "colorsys.py")
    scene.script(source + "\nimport time\ntime.sleep(0.2)\n")
    argv = [str(venv / "bin" / "python"), "train.py"]
    for _ in range(2):
        process = scene.warmth.start(
            argv,
            env=scene.env(PYTHONPATH=str(venv.with_name("away"))),
            code=[],
            cwd=scene.project,
            folder=scene.root,
            log=scene.root / "log",
        )
        scene.started.append(process)
        if "no_such" not in source:
            assert not is_warm(process)
        process.wait(60)
    [reason] = scene.warmth.refusals()
    assert why in reason


def test_only_plain_scripts_are_started_warm() -> None:
    path = {"PATH": os.environ["PATH"]}
    python = sys.executable
    assert script_of([python, "-u", "-O", "a/train.py", "--x"], path)
    for words in (["-m", "train"], ["-c", "pass"], ["-X", "dev", "a.py"], ["./a.py"], ["../a.py"], ["a"], []):
        assert script_of([python, *words], path) is None, words
    assert script_of(["sh", "a.py"], path) is None
    assert script_of([python, "a.py"], {**path, "PYTHONPATH": "/x:src"}) is None
    assert script_of([python, "a.py"], {**path, "PYTHONINSPECT": "1"}) is None


def test_only_what_is_imported_whatever_happens_is_imported_before() -> None:
    source = b"import a.b as c, d\nfrom e.f import g\nfrom . import h\nfrom __future__ import annotations\n"
    source += (
        b"import hostler\nif x:\n    import i\ntry:\n    import j\nexcept E: pass\ndef k():\n    import l\n"
    )
    assert imports(source) == ["a.b", "d", "e.f"]
    assert imports(b"def f(:") == []


def test_warm_key_is_the_environment_without_what_identifies_a_run() -> None:
    path = {"PATH": os.environ["PATH"]}
    script = script_of([sys.executable, "a.py"], path)
    assert script is not None
    base = key_of(script, path, ["c"])
    assert key_of(script, {**path, "HOSTLER_RUN": "1"}, ["c"]) == base
    assert key_of(script, {**path, "OMP_NUM_THREADS": "1"}, ["c"]) != base
    assert key_of(script, path, ["d"]) != base


def test_few_parents_are_kept_and_none_is_left(scene: Scene) -> None:
    now = [0.0]
    scene.warmth = Warmth(scene.root / "few", lambda: now[0], wait=True)
    scene.script("import time")

    def pids() -> list[int]:
        return [entry.pool.spawner.pid for entry in scene.warmth._entries.values() if entry.pool]

    for n in range(KEPT + 2):
        scene.run(NUMBER=str(n))
    few = pids()
    assert len(few) == KEPT, "the last ones made no room for themselves"
    now[0] = RECENT
    scene.run(NUMBER="0")
    scene.run(NUMBER="new")
    assert len(pids()) == KEPT and set(few) - set(pids()) == {few[1]}
    starts = [proctable.start_of(pid) for pid in pids()]
    assert all(starts)
    few = pids()
    scene.warmth.close()
    until(lambda: not any(map(proctable.is_alive, few, starts)))


def test_a_parent_dies_with_its_worker(scene: Scene, tmp_path: Path) -> None:
    code = (
        "import os, sys, time\nfrom pathlib import Path\nfrom hostler.worker.process.warm import Warmth\n"
        "here = Path(sys.argv[1]); w = Warmth(here.parent / 'parents', wait=True)\n"
        "(here / 't.py').write_text('import time; time.sleep(99)')\n"
        "e = {**os.environ, 'PYTHONPATH': ''}\n"
        "g = dict(cwd=here, env=e, folder=here, log=here / 'log', code=[])\n"
        "w.start([sys.executable, 't.py'], **g)\n"
        "p = w.start([sys.executable, 't.py'], **g)\n"
        "[e] = w._entries.values()\n"
        "print(p.pid, p.supervisor, e.pool.spawner.pid, flush=True)\ntime.sleep(99)\n"
    )
    place = tmp_path / "of the worker"
    place.mkdir()
    worker = subprocess.Popen([sys.executable, "-c", code, str(place)], stdout=subprocess.PIPE, text=True)
    assert worker.stdout is not None
    pids = [int(word) for word in worker.stdout.readline().split()]
    starts = [proctable.start_of(pid) for pid in pids]
    assert len(pids) == 3 and all(starts)
    worker.kill()
    worker.wait()
    worker.stdout.close()
    until(lambda: not any(map(proctable.is_alive, pids, starts)), 60)
    spawning.shared().close()
