from __future__ import annotations

import os
from pathlib import Path

import pytest

from hostler.errors import PrepareError
from hostler.worker.prepare.prepare import setup_dir


def quiet(_: str) -> None:
    return None


@pytest.fixture
def code(tmp_path: Path) -> Path:
    folder = tmp_path / "code" / "abc"
    (folder / "sub").mkdir(parents=True)
    (folder / "setup.sh").write_text("echo built > built; pwd >> built; echo x >> $COUNT; test ! -e $FAIL\n")
    return folder


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "COUNT": str(tmp_path / "count"), "FAIL": str(tmp_path / "fail")}


COMMAND = ("bash", "setup.sh")


def runs(environ: dict[str, str]) -> int:
    return Path(environ["COUNT"]).read_text().count("x")


def test_setup_runs_once_where_it_stays(tmp_path: Path, code: Path, environ: dict[str, str]) -> None:
    ready = setup_dir(COMMAND, code, tmp_path / "cache", quiet, environ=environ)
    assert setup_dir(COMMAND, code, tmp_path / "cache", quiet, environ=environ) == ready
    assert (ready / "built").read_text() == f"built\n{ready}\n" and runs(environ) == 1
    assert not (code / "built").exists()


def test_another_command_python_or_code_is_another_setup(
    tmp_path: Path, code: Path, environ: dict[str, str]
) -> None:
    other = code.with_name("def")
    code.rename(other)
    found = {
        setup_dir(command, other, tmp_path / "cache", quiet, environ=environ, varies=varies)
        for command, varies in ((COMMAND, ()), ((*COMMAND, "more"), ()), (COMMAND, ("python3.12",)))
    }
    other.rename(code)
    found.add(setup_dir(COMMAND, code, tmp_path / "cache", quiet, environ=environ))
    assert len(found) == 4 == runs(environ)


def test_failed_setup_shows_last_lines_keeps_nothing_and_is_retried(
    tmp_path: Path, code: Path, environ: dict[str, str]
) -> None:
    (code / "setup.sh").write_text("seq 1 100; test ! -e $FAIL || exit 3\n")
    Path(environ["FAIL"]).touch()
    with pytest.raises(PrepareError, match=r"(?s)setup failed \(exit 3\).*:\n81\n.*\n100$"):
        setup_dir(COMMAND, code, tmp_path / "cache", quiet, environ=environ)
    left = list((tmp_path / "cache" / "prepared").iterdir())
    assert sorted(path.suffix for path in left) == [".lock", ".log"]
    Path(environ["FAIL"]).unlink()
    assert (setup_dir(COMMAND, code, tmp_path / "cache", quiet, environ=environ) / "setup.sh").exists()


def test_what_a_setup_prints_is_its_owners_alone(tmp_path: Path, code: Path, environ: dict[str, str]) -> None:
    for _ in range(2):
        Path(environ["FAIL"]).touch()
        with pytest.raises(PrepareError):
            setup_dir(COMMAND, code, tmp_path / "cache", quiet, environ=environ)
    [log] = (tmp_path / "cache" / "prepared").glob("*.log")
    assert log.stat().st_mode & 0o077 == 0


def test_a_setup_program_that_is_not_there_is_named(
    tmp_path: Path, code: Path, environ: dict[str, str]
) -> None:
    with pytest.raises(PrepareError, match="no-such-program: No such file"):
        setup_dir(("no-such-program",), code, tmp_path / "cache", quiet, environ=environ)


def test_without_a_setup_the_code_is_used_as_it_is(tmp_path: Path, code: Path) -> None:
    assert setup_dir((), code, tmp_path / "cache", quiet, environ={}) == code
