"""A warm process ends as a fresh one does, also where libraries in C have something left to do."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from test_warm import Scene, quiet_path

from hostler.worker.process import exit_handlers

LIBRARY = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <fcntl.h>
extern void *__dso_handle;
extern int __cxa_atexit(void (*)(void *), void *, void *);
static char path[4096], object;
static void note(const char *text) {
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (write(file, text, strlen(text)) < 0) abort();
    close(file);
}
static void by_atexit(void) { note("atexit\\n"); }
static void by_static(void *it) { note("static object\\n"); }
void use(const char *place) { strcpy(path, place); }
void on_purpose(const char *place) { use(place); atexit(by_atexit); }
void as_object(const char *place) { use(place); __cxa_atexit(by_static, &object, &__dso_handle); }
static void by_on_exit(int status, void *it) {
    char text[64];
    sprintf(text, "on_exit %d\\n", status);
    note(text);
}
void twice(const char *place) { use(place); atexit(by_atexit); on_exit(by_on_exit, 0); }
#ifdef GPU
__attribute__((section(".nv_fatbin"), used)) static const char code[8] = "code";
#endif
#ifdef UNLOADED
__attribute__((destructor)) static void unloaded(void) { note("unloaded\\n"); }
#endif
void buffered(const char *place) { fputs("buffered\\n", fopen(place, "w")); }
"""
LOAD = (
    "import ctypes, os\nlibrary = ctypes.CDLL(os.environ['LIBRARY'])\nplace = os.environ['PLACE'].encode()\n"
)
# A module that is imported before the fork: the script uses what it registered then.
REGISTERS = "import ctypes, os\nlibrary = ctypes.CDLL(os.environ['LIBRARY'])\nlibrary.twice(b'/dev/null')\n"
SCRIPTS = {
    "a function registered by atexit": LOAD + "library.on_purpose(place)",
    "a static object of a library that the script loads": LOAD + "library.as_object(place)",
    "a buffer of C's standard library": LOAD + "library.buffered(place)",
    "both, and an exit code": LOAD
    + "library.on_purpose(place)\nlibrary.as_object(place)\nraise SystemExit(3)",
}


__all__ = ["quiet_path"]  # a fixture
pytestmark = pytest.mark.usefixtures("quiet_path")


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    made.close()


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _built(tmp_path_factory.mktemp("library"))


@pytest.fixture(scope="module")
def venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with a module that registers functions when it is imported."""
    made = tmp_path_factory.mktemp("environment") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(made)], check=True)
    [site] = made.glob("lib/python*/site-packages")
    (site / "registers.py").write_text(REGISTERS)
    return made


@pytest.mark.needs("gcc")
@pytest.mark.parametrize("case", SCRIPTS)
def test_libraries_loaded_by_a_script_end_as_when_fresh(scene: Scene, library: Path, case: str) -> None:
    scene.script(SCRIPTS[case])
    place = scene.root / "place"
    more = {"LIBRARY": str(library), "PLACE": str(place)}
    ends = []
    for warm in (False, True, True):
        place.unlink(missing_ok=True)
        exit, log = scene.run(warm=warm, **more)
        ends.append((exit.code, log, place.read_text()))
    assert scene.warmth.refusals() == []
    assert ends[0][2] and ends == [ends[0]] * 3


class Imported:
    """A library in an environment of its own, which registers its functions when it is imported."""

    def __init__(self, tmp_path: Path, library: Path, venv: Path) -> None:
        self.place, self._library = tmp_path / "place", library
        self.scene = Scene(tmp_path / "scene", python=str(venv / "bin" / "python"))

    def ends(self, script: str, **given: object) -> list[tuple[int | None, str, str]]:
        """How a script ends afresh, and twice warm: its code, its log, and the functions that were called."""
        self.scene.script(
            f"import registers, os\nregisters.library.use(os.environ['PLACE'].encode())\n{script}"
        )
        try:
            found = []
            for warm in (False, True, True):
                self.place.unlink(missing_ok=True)
                more = {"LIBRARY": str(self._library), "PLACE": str(self.place)}
                exit, log = self.scene.run(warm=warm, **given, **more)
                found.append((exit.code, log, self.place.read_text() if self.place.exists() else ""))
            assert self.scene.warmth.refusals() == []
            return found
        finally:
            self.scene.close()


@pytest.mark.needs("gcc")
@pytest.mark.parametrize(
    "script", ["", "raise SystemExit(3)", "f = open(os.environ['PLACE'], 'a')\nf.write('f\\n')"]
)
def test_library_imported_before_the_fork_closes_its_files(
    tmp_path: Path, library: Path, venv: Path, script: str
) -> None:
    ends = Imported(tmp_path, library, venv).ends(script)
    status = 3 if "3" in script else 0
    assert ends[0][2].endswith(f"on_exit {status}\natexit\n"), "the newest is called first"
    assert ends == [ends[0]] * 3


@pytest.mark.needs("gcc")
@pytest.mark.parametrize("strict", [False, True])
def test_gpu_code_is_not_unloaded_while_no_device_is_open(tmp_path: Path, venv: Path, strict: bool) -> None:
    library = _built(tmp_path, "-DGPU")
    fresh, first, warm = Imported(tmp_path, library, venv).ends("", strict=strict)
    assert fresh[2] == first[2] == "on_exit 0\natexit\n"
    assert warm == (fresh if strict else (0, "", "on_exit 0\n")), (
        "what was not registered by atexit is called"
    )


@pytest.mark.needs("gcc")
@pytest.mark.parametrize("strict", [False, True])
def test_strict_process_ends_through_libc(tmp_path: Path, venv: Path, strict: bool) -> None:
    library = _built(tmp_path, "-DUNLOADED")
    fresh, first, warm = Imported(tmp_path, library, venv).ends(
        "import atexit, sys\n"
        "sys.modules['__main__'].__dict__['x'] = [open(os.environ['PLACE'], 'a')]\n"
        "x[0].write('kept\\n')\n"
        "atexit.register(print, 'first registered')\natexit.register(print, 'last registered')\n",
        strict=strict,
    )
    assert first == fresh == (0, "last registered\nfirst registered\n", "kept\non_exit 0\natexit\nunloaded\n")
    assert warm == (fresh if strict else (*fresh[:2], "kept\non_exit 0\natexit\n")), "exit alone unloads"


# As torch's: held by what is no module of the script. The kernel ends a process beyond its CPU time.
MODULES = """
import resource, sys, types
resource.setrlimit(resource.RLIMIT_CPU, (8, 8))
sys.held = [types.ModuleType(f"made{n}") for n in range(3000)]
for module in sys.held:
    module.names = [[] for _ in range(200)]
    sys.modules[module.__name__] = module
"""


def test_end_of_thousands_of_modules_that_stay_is_quick(scene: Scene) -> None:
    scene.script(MODULES)
    assert [scene.run(warm=warm)[0].code for warm in (False, True, True)] == [0, 0, 0]
    assert scene.warmth.refusals() == []


def test_handlers_that_only_free_memory_need_no_exit() -> None:
    assert _in_fork(lambda seen: exit_handlers.needs_exit(seen)) == 0


def test_unreadable_list_of_handlers_needs_exit() -> None:
    assert exit_handlers.needs_exit(None)


def test_function_registered_after_the_look_needs_exit() -> None:
    def register(seen: exit_handlers.KnownHandlers | None) -> bool:
        libc = ctypes.CDLL(None)
        libc.on_exit(ctypes.cast(libc.abs, ctypes.c_void_p), None)
        return exit_handlers.needs_exit(seen)

    assert _in_fork(register) == 1


def _in_fork(question: Callable[[exit_handlers.KnownHandlers | None], bool]) -> int:
    """The answer as an exit code, in a fork of this process."""
    seen = exit_handlers.look(ctypes)
    assert seen is not None, "this machine's libc is not glibc on x86-64"
    child = os.fork()
    if child == 0:
        os._exit(question(seen))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _built(folder: Path, *options: str) -> Path:
    source, built = folder / "library.c", folder / "library.so"
    source.write_text(LIBRARY)
    subprocess.run(
        ["gcc", "-D_GNU_SOURCE", *options, "-shared", "-fPIC", "-o", str(built), str(source)], check=True
    )
    return built
