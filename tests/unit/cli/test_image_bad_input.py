"""What `hostler image` refuses with one line, before any cloud is asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from hostler.backends.gce.backend import GceBackend
from hostler.backends.gce.images import temporary
from hostler.backends.images import Recipe
from hostler.cli import here
from hostler.cli.machines import image_recipe
from hostler.cli.main import cli
from hostler.errors import HostlerError

FLEETS = "fleets:\n  burst: {backend: gce, project: p, zones: [us-central1-a]}\n  desk: {backend: local}\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOSTLER_GCE_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setattr(GceBackend, "check", lambda self, fleet, recipe: temporary.check(recipe))
    monkeypatch.setenv("TOKEN", "hush-hush")
    (tmp_path / "hostler.yaml").write_text(f"name: x\nsecrets: [TOKEN]\n{FLEETS}")
    (tmp_path / "setup.sh").write_text("echo hi\n")
    (tmp_path / "empty.sh").write_text("#!/bin/bash\n# nothing\n\n")
    (tmp_path / "bytes.sh").write_bytes(b"\xff\xfe")
    (tmp_path / "zero.sh").write_bytes(b"echo\0hi")
    (tmp_path / "told.sh").write_text("curl -H hush-hush x\n")
    here.project.cache_clear()
    return tmp_path


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "the kind of image is not given"),
        (["--family", "mine"], "nothing was named to put on the image"),
        (["--family", "mine", "--script", "none.sh"], "none.sh does not exist"),
        (["--family", "mine", "--script", "."], "cannot be read"),
        (["--family", "mine", "--script", "empty.sh"], "has no command in it"),
        (["--family", "mine", "--script", "bytes.sh"], "is not text"),
        (["--family", "mine", "--script", "zero.sh"], "is not text"),
        (["--family", "mine", "--script", "told.sh"], "holds the value of TOKEN"),
        (["--family", "Mine", "--script", "setup.sh", "-y"], "not a valid family name"),
        (["--family", "mine", "--script", "setup.sh", "--timeout", "soon"], "not a duration"),
        (["--family", "mine", "--script", "setup.sh", "--timeout", "0s"], "between a second and a day"),
        (["--family", "mine", "--script", "setup.sh", "--disk", "big"], "not a size"),
        (["--family", "mine", "--script", "setup.sh", "--on", "desk"], "the machines of desk have no images"),
        (["--family", "mine", "--script", "setup.sh", "--on", "brust"], "no fleet named 'brust'"),
        (["--family", "mine", "--script", "setup.sh", "--zone", "here", "-y"], "is neither a zone"),
        (["--family", "mine", "--script", "setup.sh", "--machine", "big", "-y"], "is not a machine type"),
        (["--family", "mine", "--script", "setup.sh", "--from-project", "p"], "--from-project needs --from"),
        (["--family", "mine", "--from-vm", "dev", "--from", "x"], "--from-vm and --from cannot be combined"),
        (
            ["--docker", "--family", "mine"],
            "--docker cannot be combined with --family, --script or --from-vm",
        ),
        (["--family", "mine", "--script", "setup.sh"], "cannot ask: the input has ended"),
    ],
)
def test_what_cannot_be_is_one_line(words: list[str], said: str) -> None:
    with pytest.raises(HostlerError, match=said) as error:
        CliRunner().invoke(cli, ["image", "build", *words], catch_exceptions=False, standalone_mode=False)
    assert "\n" not in error.value.message and error.value.hint


def test_requirements_of_the_project_itself_are_refused(folder: Path) -> None:
    (folder / "hostler.yaml").write_text(f"name: x\npython: {{requirements: needs.txt}}\n{FLEETS}")
    here.project.cache_clear()
    for text, said in (("", ""), ("-e .\n", "names things of the project itself")):
        if text:
            (folder / "needs.txt").write_text(text)
        with pytest.raises(HostlerError, match=said or r"needs\.txt, named by .* does not exist"):
            CliRunner().invoke(cli, ["image", "build", "--family", "m"], catch_exceptions=False)


def test_without_a_fleet_the_zone_is_asked_for(folder: Path) -> None:
    (folder / "hostler.yaml").unlink()
    here.project.cache_clear()
    words = ["image", "build", "--family", "mine", "--script", "setup.sh", "--project", "p"]
    with pytest.raises(HostlerError, match="no zone is given"):
        CliRunner().invoke(cli, words, catch_exceptions=False)
    with pytest.raises(HostlerError, match="cannot ask"):
        CliRunner().invoke(cli, [*words, "--zone", "us-central1-a"], catch_exceptions=False)


def test_secret_in_a_script_is_reported_without_its_value() -> None:
    text = "huggingface-cli login --token hush1234\ncurl -u me:hush5678 https://x.example\npip install x\n"
    said = image_recipe.doubts(Recipe("mine", text, "setup.sh", files={"r.txt": "x --hash=sha256:0123"}))
    assert [line.partition("(")[2].partition(")")[0] for line in said] == [
        "the value of --token",
        "the password after -u",
    ]
    assert "hush" not in "".join(said)
