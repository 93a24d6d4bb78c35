"""A Python that has imported what a script imports, and whose forks run that script as a fresh one would.

A program of its own (`python OPTIONS warm_parent.py SOCKET_FD ROLE CONFIG_FILE`), run by the run's own
interpreter in the run's environment; standard library only. It imports only what lies outside the project,
executes nothing of the project, and answers `ready` or why it won't do: in doubt a run is started afresh.
Then it forks supervisors (`spawner.py`), whose own forks come back to the end of this file, so that no
frame but this module's is below the script's. What this program itself imports is hidden from the script.
"""

import sys

ORIGINAL = {name: value for name, value in globals().items() if name.startswith("__")}  # as in any new script
BEFORE = set(sys.modules)
MAIN: "Any" = type(sys)("__main__")  # the script's, which imports may take note of
FOLDER_ON_PATH = not getattr(sys.flags, "safe_path", False)
if FOLDER_ON_PATH:
    del sys.path[0]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

import os  # noqa: E402  # site has imported it already

TOOLS: "dict[str, Any]" = {}  # modules that the script must not find
TORCH_SEED = 67280421310721  # with which each process begins, in versions that do not draw one


class Forked(BaseException):
    """Raised in a new process, to leave the frames of its supervisor behind."""

    def __init__(self, request: "dict[str, Any]", kept: "Modules") -> None:
        super().__init__()
        self.request, self.kept = request, kept


class Modules:
    """The modules that are there before a script begins. The table of all is in the order in which they came:
    whoever asks for later ones looks no further than to the last of these, as a look at each would copy the
    pages that a fork shares."""

    def __init__(self) -> None:
        self.table: dict[str, Any] = sys.modules
        self._names = set(sys.modules)
        self._last = next(reversed(sys.modules))
        self._border = sys.modules[self._last]

    def later(self) -> "list[tuple[str, Any]]":
        """Those that have come since, the newest first."""
        names = []
        try:
            for name in reversed(sys.modules):
                if name == self._last and sys.modules[name] is self._border:
                    break
                names.append(name)
        except (RuntimeError, TypeError):  # a thread imports meanwhile, or the script has a table of its own
            names = list(sys.modules)[::-1]
        return [(name, sys.modules.get(name)) for name in names if name not in self._names]


def serve() -> None:
    """Does not return; raises Forked in each process that is to run the script."""
    import _weakref
    import array  # noqa: F401  # all that is needed, before a folder full of names is on the path
    import atexit
    import ctypes
    import gc
    import importlib.util  # noqa: F401
    import json
    import select  # noqa: F401
    import signal
    import socket
    import sysconfig

    with open(sys.argv[3]) as file:
        config = json.load(file)
    given = started_with(config["env"])
    hear(signal)
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import spawner  # type: ignore[import-not-found]

    del sys.path[0]
    supervisor, exit_handlers = spawner.beside("supervisor"), spawner.beside("exit_handlers")
    libc = ctypes.CDLL(None)
    TOOLS.update(atexit=atexit, ctypes=ctypes, gc=gc, exit_handlers=exit_handlers)
    TOOLS.update(ref=_weakref.ref, signal=signal)
    TOOLS.update(exit=libc.exit, fflush=libc.fflush)
    connection = socket.socket(fileno=int(sys.argv[1]))
    os.set_inheritable(connection.fileno(), False)
    roots = [sys.prefix, sys.base_prefix, sys.exec_prefix]
    roots += [sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")]
    for name in set(sys.modules) - BEFORE:
        del sys.modules[name]  # the script gets its own, and finds no other
    sys.modules["__main__"] = MAIN
    reason = prepare(config, connection.fileno(), roots)
    kept = Modules()
    disarm()
    compile("", "", "exec")  # the first one makes the classes of all its nodes: once, and not in each run
    connection.sendall((reason or "ready").replace("\n", " ").encode() + b"\n")
    if reason:
        os._exit(0)
    if not config["strict"]:
        TOOLS["handlers"] = exit_handlers.look(ctypes)
        gc.collect()
        gc.freeze()  # else the end of each fork walks through, and so copies, all that was imported
    handlers = {number: signal.getsignal(number) for number in range(1, signal.NSIG)}
    changed = [(n, handler) for n, handler in handlers.items() if handler not in (None, signal.SIG_DFL)]

    def begin(request: "dict[str, Any]") -> "Callable[[], None]":
        def act() -> None:
            for number, handler in changed:
                signal.signal(number, handler)
            supervisor.rename(spawner.SUPERVISOR_ROLE, b"role=run.......")
            raise Forked({**request, "given": given}, kept)

        return act

    spawner.main(connection, supervisor, sys.argv[2].encode(), begin)
    os._exit(0)


def started_with(names: "list[str]") -> "dict[str, str]":
    """The variables as they came, before an import changes any; as the worker reads them, in any locale."""
    found = {name: os.environb.get(name.encode("utf-8", "surrogateescape")) for name in names}
    return {name: raw.decode("utf-8", "surrogateescape") for name, raw in found.items() if raw is not None}


def hear(signal: "Any") -> None:
    """A worker in the background of a shell, or under nohup, is deaf to some signals; its runs are not."""
    for number in range(1, signal.NSIG):
        if signal.getsignal(number) is signal.SIG_IGN and number not in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def prepare(config: "dict[str, Any]", connection: int, roots: "list[str]") -> "str | None":
    """Import; the reason this cannot be a parent, or None."""
    if sys.version_info < (3, 10):  # noqa: UP036  # the run's own Python, not ours
        return "this Python is older than 3.10"
    for name in config["modules"]:
        try:
            __import__(name)
        except BaseException as error:  # whatever it is, the script meets it itself
            return f"importing {name}: {error!r}"
    sys.stdout.flush()
    sys.stderr.flush()
    if os.fstat(1).st_size:
        return "an import prints something"
    if opened({0, 1, 2, connection}):
        return "an import leaves files open"
    return stranger(config["shadows"], roots) or threads() or cuda()


def disarm() -> None:
    """Keep finalizers that imports registered from running at the end of each fork."""
    if "weakref" in sys.modules:
        finalize = sys.modules["weakref"].finalize
        for one in list(finalize._registry):
            one.atexit = False


def opened(known: "set[int]") -> "list[int]":
    """Open descriptors but these."""
    found = [int(name) for name in os.listdir("/proc/self/fd")]
    return [n for n in found if n not in known and os.path.exists(f"/proc/self/fd/{n}")]


def stranger(shadows: "list[str]", roots: "list[str]") -> "str | None":
    """A module from elsewhere than the interpreter's folders, or one that the project has under its name."""
    inside = tuple({os.path.realpath(root) + os.sep for root in roots})
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if name in BEFORE or module is MAIN or not str(file).startswith("/"):  # some are made up
            continue
        if not os.path.realpath(str(file)).startswith(inside):
            return f"{name} lies outside the interpreter"
        if name.partition(".")[0] in shadows:
            return f"{name} is a name of the project, too"
    return None


def threads() -> "str | None":
    known = sys.modules.get("threading")
    python = known.active_count() if known else 1
    system = len(os.listdir("/proc/self/task")) - 1
    if python > 1 or system not in (0, blas_threads()):
        return "an import starts a thread"
    return None


def blas_threads() -> int:
    """How many OpenBLAS keeps, which ends them before a fork and starts them again when they are needed."""
    with open("/proc/self/maps") as file:
        copies = {line.rpartition(" ")[2] for line in file if "openblas" in line.rpartition("/")[2]}
    asked = [os.environ.get(name, "") for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")]
    each = next((int(text) for text in asked if text.isdigit()), len(os.sched_getaffinity(0)))
    return len(copies) * (each - 1)


def cuda() -> "str | None":
    torch = sys.modules.get("torch")
    return "an import initialises CUDA" if torch is not None and torch.cuda.is_initialized() else None


def become(forked: Forked) -> None:
    """Make everything of this process what the script would find in one of its own."""
    request = forked.request
    for name, _ in forked.kept.later():
        del sys.modules[name]
    for name in os.listdir("/proc/self/fd"):
        if name not in ("0", "1", "2"):
            try:
                os.close(int(name))
            except OSError:  # that of the list itself
                pass
    given, wanted = request["given"], request["env"]
    for name in {**given, **wanted}:
        if name not in wanted:
            os.environ.pop(name, None)
        elif given.get(name) != wanted[name]:
            os.environ[name] = wanted[name]
    sys.argv[:] = request["argv"][request["script_at"] :]
    if hasattr(sys, "orig_argv"):
        sys.orig_argv[:] = request["argv"]
    if FOLDER_ON_PATH:
        sys.path.insert(0, os.path.dirname(os.path.realpath(sys.argv[0])))
    renew(sys.modules)


def renew(modules: "Any") -> None:
    """Renew what modules keep of their process: seeds, its start time, the folder it was started in."""
    if "random" in modules:
        modules["random"].seed()
    if "numpy.random" in modules:
        modules["numpy.random"].seed()
    torch = modules.get("torch")
    if torch is not None and torch.default_generator.initial_seed() != TORCH_SEED:
        torch.default_generator.seed()
    if "multiprocessing.process" in modules:
        process = modules["multiprocessing.process"]
        process.ORIGINAL_DIR = os.getcwd()  # noqa: PTH109
        process.current_process().authkey = os.urandom(32)
    start = getattr(modules.get("logging"), "_startTime", None)
    if start is not None:
        time = modules["time"]
        modules["logging"]._startTime = time.time() if isinstance(start, float) else time.time_ns()


def fill_main(path: str) -> None:
    """Make the script's __main__ what it is when a script begins."""
    loader = sys.modules["_frozen_importlib_external"].SourceFileLoader("__main__", path)
    MAIN.__dict__.clear()
    MAIN.__dict__.update(ORIGINAL)
    MAIN.__dict__.update(__name__="__main__", __doc__=None, __file__=path, __loader__=loader)
    if "__annotations__" in ORIGINAL:
        MAIN.__dict__.update(__annotations__={})


def disown(error: BaseException) -> None:
    """As if nothing were below the script; the interpreter itself ends the process, as it always does."""
    traceback = error.__traceback__.tb_next if error.__traceback__ else None
    hook = sys.excepthook

    def once(kind: "Any", value: BaseException, _: "Any") -> None:
        sys.excepthook = hook
        value.__traceback__ = traceback
        try:
            hook(kind, value, traceback)
        except SystemExit:
            raise
        except BaseException as failed:  # said as the interpreter says it
            failed.__traceback__ = failed.__traceback__ and failed.__traceback__.tb_next
            sys.stderr.write("Error in sys.excepthook:\n")
            sys.__excepthook__(type(failed), failed, failed.__traceback__)
            sys.stderr.write("\nOriginal exception was:\n")
            sys.__excepthook__(kind, value, traceback)

    if not isinstance(error, SystemExit):
        sys.excepthook = once


def status_of(error: SystemExit) -> "int | None":
    """The status of a plain exit; None: the interpreter is to make something of it."""
    code = 0 if error.code is None else error.code
    return code if type(code) is int and 0 <= code <= 255 else None


def leave(status: int, kept: Modules) -> None:
    """End as the interpreter does, but for the modules that were there before: taking those apart, page by
    page of what the parent has, would take longer than the script."""
    if "threading" in sys.modules:
        sys.modules["threading"]._shutdown()
    TOOLS["atexit"]._run_exitfuncs()
    flush()
    needs_exit = TOOLS["exit_handlers"].needs_exit(TOOLS.get("handlers"))
    forget_handlers(TOOLS["signal"])
    if TOOLS["gc"].isenabled():
        TOOLS[
            "gc"
        ].collect()  # as the interpreter does first: it orders what is finalized, files last to first
    drop_modules(kept)
    flush()
    if needs_exit:
        TOOLS["exit"](status)
    TOOLS["exit_handlers"].call(TOOLS["ctypes"], TOOLS["handlers"], status)
    TOOLS["fflush"](None)
    os._exit(status)


def forget_handlers(signal: "Any") -> None:
    """Functions of the script's would hold on to its names."""
    for number in range(1, signal.NSIG):
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)


def drop_modules(kept: Modules) -> None:
    """Let go of the script's modules, so that what only they hold is finalized while they still have their
    names; those that something else holds lose them afterwards."""
    global MAIN
    later = kept.later()
    modules = [MAIN, *(one for _, one in later if one is not MAIN and isinstance(one, type(sys)))]
    refs = [TOOLS["ref"](module) for module in modules]
    for name in ("__main__", *(name for name, _ in later)):
        kept.table[name] = None
    del later, MAIN
    while modules:
        modules.pop(0)
    TOOLS["gc"].collect()
    left = False
    for ref in reversed(refs):  # as the interpreter goes: those that came last first
        if (module := ref()) is not None:
            clear(vars(module))
            left, module = True, None
    if left:
        TOOLS["gc"].collect()


def clear(names: "dict[str, Any]") -> None:
    """The names of a module, private ones first, as the interpreter does it."""
    for private in (True, False):
        for name in list(names):
            if name != "__builtins__" and (name[:1] == "_" and name[:2] != "__") == private:
                names[name] = None


def flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not stream.closed:
            stream.flush()


if __name__ == "__main__":
    try:
        serve()
    except Forked as found:
        forked = Forked(found.request, found.kept)
    become(forked)
    path = os.path.abspath(sys.argv[0])
    fill_main(path)
    try:
        with open(path, "rb") as file:
            source = file.read()
        exec(compile(source, path, "exec", dont_inherit=True), MAIN.__dict__)
        status: "int | None" = 0
    except SystemExit as error:
        status = status_of(error)
        if status is None:
            raise
    except BaseException as error:
        disown(error)
        raise
    leave(status or 0, forked.kept)
