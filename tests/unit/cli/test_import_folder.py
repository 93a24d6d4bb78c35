"""`hostler import` of a folder that clouDL made: the files of the project, what is said, what stays."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cloudl_world import QUICK, SCRIPT, folder
from hostler.backends.project_file import load_project, load_sweep
from hostler.cli.main import cli
from hostler.errors import UsageError


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "mnist"
    made.mkdir()
    monkeypatch.chdir(made)
    return made


def brought(*words: str, given: str | None = None) -> Result:
    done = CliRunner().invoke(cli, ["import", *words], input=given, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done


@pytest.mark.parametrize("named", [".", "user_files"])
def test_it_becomes_a_project_that_loads(root: Path, named: str) -> None:
    folder(root, "list", sections=2)
    said = brought(named, "--store", "gs://b/mnist").output
    assert "6 runs there, 6 runs here" in said
    for words in (
        "hostler report mnist --show; hostler archive --top 2",
        "hostler sweep --no-start sweep.yaml",
    ):
        assert words in said
    project = load_project(root / "hostler.yaml")
    assert (project.name, project.command) == ("mnist", ("python", "search.py"))
    assert (project.metric, project.goal, project.style) == ("val_loss", "min", "none")
    assert (project.setup, project.env) == (("bash", "cloudl_setup.sh"), {"OMP_NUM_THREADS": "1"})
    fleet = project.fleets[str(project.fleet)]
    assert (fleet.backend, fleet.workers, fleet.options["spot"]) == ("gce", 1, True)
    assert load_sweep(root / "sweep.yaml", project).name == "mnist"
    assert "from hostler.manager import" in (root / "clouDL/manager.py").read_text()
    assert (root / ".hostlerignore").read_text() == "user_files/access_token\n"
    assert "ghp_hushhush" not in said + "".join(
        path.read_text() for path in root.rglob("*") if path.is_file() and path.name != "access_token"
    )


def test_the_folder_itself_may_be_the_project(root: Path) -> None:
    made = folder(root, "step")
    (made / "search.py").write_text(SCRIPT)
    (root / "elsewhere").mkdir()
    brought("user_files", "user_files")
    assert load_project(made / "hostler.yaml").name == "mnist"
    assert (made / ".hostlerignore").read_text() == "access_token\n"
    with pytest.raises(UsageError, match="is outside"):
        brought("user_files", "elsewhere")


def test_second_import_overwrites_nothing_unasked(root: Path) -> None:
    folder(root, "multiple")
    brought("user_files")
    again = brought("user_files").output
    assert "nothing to write: everything is there already" in again
    (root / "hostler.yaml").write_text("name: mine\n")
    (root / "user_files/hyperparameters.json").write_text('{"iterations": 1, "hyperparameters": [{"A": 1}]}')
    with pytest.raises(UsageError, match=r"hostler\.yaml, sweep\.yaml are there already"):
        brought("user_files")
    with pytest.raises(UsageError, match="are there already"):
        brought("user_files", given="n\n")
    assert (root / "hostler.yaml").read_text() == "name: mine\n"
    said = brought("user_files", given="y\n").output
    assert "1 run here" in said and "already there and unchanged: " in said
    assert load_project(root / "hostler.yaml").name == "mnist"


def test_fetched_code_gets_clouDL_imports_at_setup(root: Path) -> None:
    script = "git clone https://me:$TOKEN@github.com/me/code.git\ncd code\npython search.py\n"
    folder(root, "list", user_startup__sh=script)
    (root / "search.py").unlink()
    said = brought("user_files").output
    project = load_project(root / "hostler.yaml")
    assert project.git is not None and project.git.url == "https://github.com/me/code.git"
    assert project.git.token_secret == "TOKEN"
    assert project.setup[:2] == ("bash", "-c") and not (root / "cloudl_setup.sh").exists()
    assert "[ -e clouDL ] || { mkdir -p clouDL;" in project.setup[2] and not (root / "clouDL").exists()
    assert 'export TOKEN="$(cat user_files/access_token)"' in said
    assert "metric: nothing here says what is compared" in said


def test_code_both_here_and_fetched_names_its_metric(root: Path) -> None:
    folder(root, "list", user_startup__sh="git clone https://x.example/me/code\ncd code\npython search.py\n")
    assert "metric: nothing" not in brought("user_files").output
    project = load_project(root / "hostler.yaml")
    assert (project.metric, project.goal) == ("val_loss", "min") and project.git is not None


def test_too_old_image_is_left_out_of_the_import(
    root: Path,
) -> None:
    quick = QUICK.replace("$BASE/user_startup.sh", "$BASE/mine.sh")
    made = folder(root, "list", quick_start__sh=quick)
    configs = json.loads((made / "configs.json").read_text())
    old = "projects/ml-images/global/images/c0-deeplearning-common-cu110-v20201105-debian-10"
    (made / "configs.json").write_text(json.dumps({**configs, "sourceImage": old}))
    said = brought("user_files").output
    fleet = load_project(root / "hostler.yaml").fleets["vm"]
    assert "image" not in fleet.options and f"image: {old} has no Python 3.10" in said
    assert "quick_start.sh names ./user_files/mine.sh, and user_startup.sh is what was read" in said


def test_startup_secrets_are_imported_by_name_alone(root: Path) -> None:
    script = "export WANDB_API_KEY=hush1234\ngit clone https://me:ghp_zzz@github.com/me/code.git\ncd code\n"
    folder(root, "list", user_startup__sh=f"{script}python search.py\n")
    said = brought("user_files").output
    project = load_project(root / "hostler.yaml")
    assert project.secrets == ("WANDB_API_KEY",) and "WANDB_API_KEY" not in project.env
    assert project.git is not None and project.git.url == "https://github.com/me/code.git"
    assert project.git.token_secret == "TOKEN" and "export TOKEN=..." in said
    assert "user_files/user_startup.sh\n" in (root / ".hostlerignore").read_text()
    texts = [path.read_text() for path in root.iterdir() if path.is_file()]
    assert not any("hush1234" in text or "ghp_zzz" in text for text in (said, *texts))


def test_no_command_secret_lands_in_a_project_file(root: Path) -> None:
    script = """
export HF_TOKEN=hush-1
huggingface-cli login --token hush-2
curl -H "Authorization: Bearer hush-3" https://x.example/data > data.bin
wandb login hush-6
pip install git+https://hush-5@x.example/me/lib
WANDB_API_KEY=hush-6 python search.py --token=hush-7 --api-key 'hush-8' --lr 1
curl -u me:hush-9 https://x.example/done
"""
    quick = f"{QUICK}\nexport COMET_API_KEY=hush-0\nclouDL a b --tokenpth ./user_files/mine\n"
    made = folder(root, "list", user_startup__sh=script, quick_start__sh=quick)
    (made / "mine").write_text("hush-mine")
    (made / "user_startup.sh.bak").write_text("export HF_TOKEN=hush-old")
    (made / "notes").write_bytes(b"\xff")
    said = brought("user_files").output
    project = load_project(root / "hostler.yaml")
    assert project.command[:2] == ("bash", "-c")
    assert project.command[2] == 'python search.py --token="$TOKEN_2" --api-key "$API_KEY" --lr 1'
    needed = ("HF_TOKEN", "WANDB_API_KEY", "HF_TOKEN_2", "AUTHORIZATION", "TOKEN_2", "TOKEN", "API_KEY")
    assert sorted(project.secrets) == sorted(needed)
    for name in needed:
        assert f"{name}: its value" in said and f"export {name}=... before a sweep" in said
    setup = (root / "cloudl_setup.sh").read_text()
    assert 'huggingface-cli login --token "$HF_TOKEN_2"' in setup and "wandb login" not in setup
    hidden = [f"user_files/{name}" for name in ("access_token", "mine")]
    hidden += [f"user_files/{name}" for name in ("quick_start.sh", "user_startup.sh", "user_startup.sh.bak")]
    assert (root / ".hostlerignore").read_text().split() == hidden
    uploaded = [one for one in root.rglob("*") if one.is_file() and str(one.relative_to(root)) not in hidden]
    assert len(uploaded) > 5 and b"hush" not in said.encode() + b"".join(one.read_bytes() for one in uploaded)


def test_whole_script_runs_from_a_copy_without_secrets(root: Path) -> None:
    script = "if true; then\n  export HF_TOKEN=hush-1\nfi\npython search.py --token hush-2\n"
    folder(root, "list", user_startup__sh=script)
    said = brought("user_files").output
    project = load_project(root / "hostler.yaml")
    assert (project.command, project.secrets) == (("bash", "cloudl_startup.sh"), ("HF_TOKEN", "TOKEN"))
    copy = (root / "cloudl_startup.sh").read_text()
    assert copy == script.replace("hush-1", '"$HF_TOKEN"').replace("hush-2", '"$TOKEN"')
    assert "user_files/user_startup.sh" in (root / ".hostlerignore").read_text() and "hush" not in said
    (root / "user_files/user_startup.sh").write_text("cat << 'E'\ntoken: hush-3 $x\nE\npython search.py\n")
    said = brought("user_files", "-y").output
    assert "stays in it: take it out yourself" in said and "hush" not in said
    assert load_project(root / "hostler.yaml").command == ("bash", "user_files/user_startup.sh")


def test_what_cannot_be_read_or_carried_over_is_named(root: Path) -> None:
    made = folder(root, "list")
    configs = {**json.loads((made / "configs.json").read_text()), "minCpuPlatform": "x"}
    (made / "configs.json").write_text(json.dumps(configs))
    (root / "search.py").unlink()
    (root / ".hostlerignore").write_text("data/")
    told = json.loads(brought("user_files", "--json").stdout)
    for words in ("minCpuPlatform: not carried over", "comments: not carried over", "search.py is not here"):
        assert any(words in note for note in told["notes"]), told["notes"]
    assert (told["runs_there"], told["runs"]) == (3, 3) and told["kept"] == []
    assert (root / ".hostlerignore").read_text() == "data/\nuser_files/access_token\n"
    (made / "user_startup.sh").write_bytes(b"\xff")
    with pytest.raises(UsageError, match="is not text"):
        brought("user_files")


def test_a_package_of_that_name_that_is_ones_own_stays(root: Path) -> None:
    folder(root, "list")
    (root / "clouDL").mkdir()
    (root / "clouDL/manager.py").write_text("class Manager: ...\n")
    brought("user_files")
    assert (root / "clouDL/manager.py").read_text() == "class Manager: ...\n"
    assert not (root / "clouDL/earlystop.py").exists()
