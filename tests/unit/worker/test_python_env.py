from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from wheel import make_wheel

from hostler.errors import MachineError, PrepareError
from hostler.spec.job import PythonEnv
from hostler.worker.prepare.python_env import PathEnv, create, named, python_env


def quiet(_: str) -> None:
    return None


def output(found: PathEnv, program: str) -> str:
    """What the program prints when it is run by the `python` that a command would find."""
    path = os.pathsep.join([*found.path_prefix, os.environ["PATH"]])
    environ = {**os.environ, **found.env, "PATH": path}
    return subprocess.run(
        ["python", "-c", program], env=environ, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def code(tmp_path: Path) -> Path:
    folder = tmp_path / "co de" / "abc"
    folder.mkdir(parents=True)
    return folder


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_requirements_are_installed_once_and_their_programs_start(tmp_path: Path, code: Path) -> None:
    make_wheel(code / "wheels", body="def main():\n    print('tool')\nVALUE = 1\n")
    (code / "requirements.txt").write_text("--no-index\n--find-links wheels\ntinypkg\n")
    said: list[str] = []
    spec = PythonEnv(requirements="requirements.txt")
    first = python_env(spec, code, tmp_path / "cache", said.append)
    assert python_env(spec, code, tmp_path / "cache", said.append) == first
    assert said == ["installing requirements.txt"]
    assert output(first, "import tinypkg; print(tinypkg.VALUE)") == "1"
    assert output(first, "import sys; print(sys.executable)") == first.exe
    tool = Path(first.path_prefix[0]) / "tinypkg-tool"
    assert subprocess.run([str(tool)], capture_output=True, text=True).stdout == "tool\n"


def test_packages_on_the_workers_own_path_are_not_installed_ones(
    tmp_path: Path, code: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = make_wheel(tmp_path / "theirs", body="VALUE = 'theirs'\n")
    make_wheel(code / "wheels")
    (code / "r.txt").write_text("--no-index\n--find-links wheels\ntinypkg\n")
    shutil.unpack_archive(theirs, tmp_path / "lib", "zip")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "lib"))
    found = python_env(PythonEnv(requirements="r.txt"), code, tmp_path / "cache", quiet)
    monkeypatch.delenv("PYTHONPATH")
    assert output(found, "import tinypkg; print(tinypkg.VALUE)") == "1"


def test_failed_install_shows_its_last_lines_and_is_retried(tmp_path: Path, code: Path) -> None:
    (code / "r.txt").write_text("--no-index\n--find-links wheels\ntinypkg\n")
    (code / "wheels").mkdir()
    with pytest.raises(PrepareError, match=r"(?s)installing r.txt failed.*tinypkg"):
        python_env(PythonEnv(requirements="r.txt"), code, tmp_path / "cache", quiet)
    assert [p.suffix for p in (tmp_path / "cache" / "envs").iterdir()] == [".lock"]
    make_wheel(code / "wheels")
    assert python_env(PythonEnv(requirements="r.txt"), code, tmp_path / "cache", quiet).env


def test_a_requirements_file_that_is_not_there_is_named(tmp_path: Path, code: Path) -> None:
    with pytest.raises(PrepareError, match=r"r\.txt"):
        python_env(PythonEnv(requirements="r.txt"), code, tmp_path / "cache", quiet)


def test_an_existing_virtual_environment_is_used(tmp_path: Path, code: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "v")], check=True)
    found = python_env(PythonEnv(venv=str(tmp_path / "v")), code, tmp_path / "cache", quiet)
    assert output(found, "import sys; print(sys.prefix)") == str(tmp_path / "v")
    with pytest.raises(PrepareError, match="no bin/python"):
        python_env(PythonEnv(venv=str(tmp_path)), code, tmp_path / "cache", quiet)


def test_an_interpreter_by_another_name_is_python_to_the_command(tmp_path: Path, code: Path) -> None:
    place = tmp_path / "v 'q"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    for name in ("python", "python3"):
        found = python_env(PythonEnv(exe=str(place / "bin" / name)), code, tmp_path / "cache", quiet)
        assert output(found, "import sys; print(sys.prefix)") == str(place)
    with pytest.raises(PrepareError, match="does not exist on this machine"):
        python_env(PythonEnv(exe=str(tmp_path / "none")), code, tmp_path / "cache", quiet)


def test_without_a_wish_the_machine_s_own_python_is_found(tmp_path: Path, code: Path) -> None:
    assert python_env(PythonEnv(), code, tmp_path, quiet).exe == (
        shutil.which("python") or shutil.which("python3")
    )


def test_python_means_python3_where_that_is_all_there_is(
    tmp_path: Path, code: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").symlink_to(sys.executable)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    found = python_env(PythonEnv(), code, tmp_path / "cache", quiet)
    assert found.exe == str(tmp_path / "bin" / "python3")
    assert output(found, "print('here')") == "here"


FAKE_CONDA = """#!/bin/sh
if [ "$1 $2" = "env list" ]; then echo '{"envs": ["ROOT/base", "ROOT/base/envs/dev"]}'; exit; fi
if [ "$1 $2" = "env create" ]; then
  echo "$@" >> ROOT/calls
  if grep -q broken "$7"; then echo ResolvePackageNotFound; exit 1; fi
  mkdir -p "$5/bin"; ln -s "$(command -v python3)" "$5/bin/python"; exit
fi
exit 2
"""


@pytest.fixture
def fake_conda(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "conda"
    script(home / "bin" / "conda", FAKE_CONDA.replace("ROOT", str(home)))
    for prefix in (home / "base", home / "base" / "envs" / "dev"):
        script(prefix / "bin" / "python", "#!/bin/sh\n")
    monkeypatch.setenv("PATH", f"{home / 'bin'}:{os.environ['PATH']}")
    return home


def test_a_conda_file_is_made_into_an_environment_once(tmp_path: Path, code: Path, fake_conda: Path) -> None:
    (code / "environment.yml").write_text("dependencies: [python]")
    spec = PythonEnv(conda="environment.yml")
    first = python_env(spec, code, tmp_path / "cache", quiet)
    assert python_env(spec, code, tmp_path / "cache", quiet) == first
    assert output(first, "print(1)") == "1" and first.env["CONDA_PREFIX"] in first.exe
    assert (fake_conda / "calls").read_text().count("env create -q -p") == 1


def test_a_conda_file_that_cannot_be_solved_shows_why(tmp_path: Path, code: Path, fake_conda: Path) -> None:
    (code / "environment.yml").write_text("broken")
    with pytest.raises(PrepareError, match="ResolvePackageNotFound"):
        python_env(PythonEnv(conda="environment.yml"), code, tmp_path / "cache", quiet)


def test_a_conda_environment_is_found_by_name(fake_conda: Path) -> None:
    assert named("dev") == fake_conda / "base" / "envs" / "dev"
    assert named("base") == fake_conda / "base"
    assert named(str(fake_conda / "base")) == fake_conda / "base"
    with pytest.raises(PrepareError, match="did you mean dev"):
        named("deev")


def test_a_machine_without_conda_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("hostler.worker.prepare.python_env._usual_places", list)
    for name in ("MAMBA_EXE", "CONDA_EXE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(MachineError, match="conda was not found"):
        named("dev")


def test_micromamba_has_its_own_words(tmp_path: Path) -> None:
    words = create("/x/micromamba", tmp_path / "p", tmp_path / "e.yml")
    assert words[:4] == ["/x/micromamba", "create", "-y", "-q"]


def test_requirements_beside_an_interpreter_are_checked_and_not_installed(tmp_path: Path, code: Path) -> None:
    (code / "r.txt").write_text("pytest==0.0.1\n")
    with pytest.raises(MachineError, match=r"pytest==0\.0\.1 \(has"):
        python_env(PythonEnv(exe=sys.executable, requirements="r.txt"), code, tmp_path / "cache", quiet)
    (code / "r.txt").write_text("-r more.txt\n")
    (code / "more.txt").write_text(f"pytest=={pytest.__version__}  # met\nnumpy>=99\n")
    found = python_env(PythonEnv(exe=sys.executable, requirements="r.txt"), code, tmp_path / "cache", quiet)
    assert found.exe == sys.executable and not (tmp_path / "cache" / "envs").exists()
