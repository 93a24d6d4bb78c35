"""Completion, as a shell asks for it; and --help, which shows every verb once."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from hostler.cli import here
from hostler.cli.begin.completion import SHELLS, VARIABLE
from hostler.cli.main import GROUPS, VERBS, cli
from hostler.records.sweep import sweeps
from hostler.spec.job import Job
from hostler.store import open_store

SOURCE = Path(__file__).parents[3] / "src"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HOSTLER_STORE", raising=False)
    here.project.cache_clear()
    yield tmp_path
    here.project.cache_clear()


def completed(*words: str) -> list[str]:
    *before, last = words
    found = ShellComplete(cli, {}, "hostler", VARIABLE).get_completions(before, last)
    return [item.value for item in found]


def kinds(*words: str) -> list[str]:
    *before, last = words
    return [item.type for item in ShellComplete(cli, {}, "hostler", VARIABLE).get_completions(before, last)]


def test_verbs_and_options_are_completed(folder: Path) -> None:
    assert completed("sta") == ["status"]
    assert {"--watch", "--state"} <= set(completed("status", "--"))
    assert completed("status", "--state", "pau") == ["paused"]


def test_completion_offers_sweeps_and_fleets(folder: Path) -> None:
    store = open_store(str(folder / ".hostler"))
    for name in ("lr-search", "lr-long", "other"):
        sweeps.submit(store, Job(name=name, command=("true",)))
    (folder / "hostler.yaml").write_text(
        "fleets: {desk: {backend: local}, lab: {backend: ssh, hosts: [a]}}\n"
    )
    assert sorted(completed("best", "lr")) == ["lr-long", "lr-search"]
    assert completed("stop", "lr-long", "o") == ["other"]
    assert completed("sweep", "--on", "la") == ["lab"]
    assert completed("down", "") == ["desk", "lab"]


def test_files_are_left_to_the_shell(folder: Path) -> None:
    assert kinds("run", "tr") == ["file"]
    assert kinds("sweep", "") == ["file"]


def test_what_cannot_be_read_completes_nothing(folder: Path) -> None:
    (folder / "hostler.yaml").write_text("store: s3://bucket/far\n")
    assert completed("best", "") == []
    here.project.cache_clear()
    (folder / "hostler.yaml").write_text("nonsense: 1\n")
    assert completed("best", "") == [] and completed("run", "--on", "") == []


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_gets_its_own_words(shell: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hostler", "completion", shell],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and f"{VARIABLE}={shell}_complete" in done.stdout, done.stderr


@pytest.fixture
def variables(tmp_path: Path) -> dict[str, str]:
    """An environment in which `hostler` is this one, as after an install, and a home is empty."""
    program = tmp_path / "hostler"
    program.write_text(f"#!{sys.executable}\nfrom hostler.cli.main import main\nmain()\n")
    program.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    return {**os.environ, "PYTHONPATH": str(SOURCE), "PATH": path, "HOME": str(tmp_path), "TERM": "xterm"}


@pytest.mark.needs("bash")
def test_bash_completes_a_verb(variables: dict[str, str]) -> None:
    asked = 'eval "$(hostler completion bash)"; COMP_WORDS=(hostler swe); COMP_CWORD=1; '
    done = subprocess.run(
        [str(shutil.which("bash")), "-c", asked + '_hostler_completion hostler; echo "${COMPREPLY[@]}"'],
        env=variables,
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == ["sweep"], done.stderr


LOADED = """
import sys
from hostler.cli.entry import main
try:
    main()
except SystemExit:
    print(*(name for name in sys.modules if name.startswith("hostler.cli.")), file=sys.stderr)
"""


def test_completing_a_verb_loads_no_verb(variables: dict[str, str]) -> None:
    asked = {VARIABLE: "bash_complete", "COMP_WORDS": "hostler swe", "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-c", LOADED], env={**variables, **asked}, capture_output=True, text=True
    )
    assert done.stdout.split() == ["plain,sweep"]
    assert set(done.stderr.split()) == {"hostler.cli.entry", "hostler.cli.main", "hostler.cli.overview"}


@pytest.mark.needs("fish")
def test_fish_completes_verbs_and_options(variables: dict[str, str]) -> None:
    folder = Path(variables["HOME"], ".config", "fish", "completions")
    folder.mkdir(parents=True)
    script = "hostler completion fish > ~/.config/fish/completions/hostler.fish; "
    asked = 'complete -C "hostler swe"; complete -C "hostler status --wat"'
    done = subprocess.run(["fish", "-c", script + asked], env=variables, capture_output=True, text=True)
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == ["sweep", "--watch"], done.stderr
    assert (folder / "hostler.fish").stat().st_size


@pytest.mark.needs("zsh")
def test_zsh_completes_what_is_typed_at_its_prompt(variables: dict[str, str], tmp_path: Path) -> None:
    Path(variables["HOME"], ".zshrc").write_text(
        'PS1="> "; autoload -Uz compinit; compinit -u\neval "$(hostler completion zsh)"\necho "rea""dy"\n'
    )
    ours, theirs = pty.openpty()
    shell = subprocess.Popen(
        ["zsh", "-i"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=variables,
        cwd=tmp_path,
        start_new_session=True,
    )
    os.close(theirs)
    try:
        read_until(ours, b"ready")
        os.write(ours, b"hostler swe\t")
        read_until(ours, b"ep")  # of sweep, behind what was typed
        os.write(ours, b"\x15hostler status --wat\t")
        read_until(ours, b"--watch")
    finally:
        shell.kill()
        shell.wait()
        os.close(ours)


def read_until(terminal: int, wanted: bytes, seconds: float = 60.0) -> bytes:
    """What is on a terminal when this is there: what was typed, and what a shell made of it."""
    seen, end = b"", time.monotonic() + seconds
    while wanted not in seen:
        ready, _, _ = select.select([terminal], [], [], max(0.0, end - time.monotonic()))
        assert ready, f"it never came: {seen!r}"
        seen += os.read(terminal, 4096)
    return seen


def test_help_shows_every_verb_once() -> None:
    grouped = [verb for verbs in GROUPS.values() for verb in verbs]
    assert len(grouped) == len(set(grouped))
    from click.testing import CliRunner

    lines = CliRunner().invoke(cli, ["--help"]).output.splitlines()
    first = [line.split()[0] for line in lines if line.startswith("  ") and line[2:3].islower()]
    assert sorted(word for word in first if word in VERBS) == sorted(VERBS)
