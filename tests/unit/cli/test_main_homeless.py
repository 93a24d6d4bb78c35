"""A folder that was removed under a terminal is no bug of hostler."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostler.cli import here, main


@pytest.mark.parametrize("words", [["doctor"], ["status"]])
def test_vanished_current_folder_is_one_clear_message(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    here.project.cache_clear()  # as in a process that has just begun
    monkeypatch.setattr("sys.argv", ["hostler", *words])
    code = main._main()
    monkeypatch.chdir(tmp_path)
    said = "hostler: the current folder no longer exists\n  → cd to one that does\n"
    assert (code, capsys.readouterr().err) == (2, said)


def test_a_user_without_a_home_is_told_what_to_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def unknown(number: int) -> None:
        raise KeyError(number)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("pwd.getpwuid", unknown)
    for name in ("HOME", "HOSTLER_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    here.project.cache_clear()
    monkeypatch.setattr("sys.argv", ["hostler", "doctor"])
    assert main._main() == 1
    said = "hostler: the home folder of this user is not known\n  → export HOME=/a/folder/of/yours\n"
    assert capsys.readouterr().err == said
