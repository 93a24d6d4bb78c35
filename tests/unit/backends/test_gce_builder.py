"""What the temporary VM of an image does: cleaning, packages where workers look, never outside its disk."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hostler.backends.gce.images import builder
from hostler.worker.prepare import python_env, requirements

KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nx\n"
PRIVATE = {
    "home/me/.env": "A=1",
    "home/me/app/.env.local": "A=1",
    "home/me/.bash_history": "ls",
    "home/me/.python_history": "x",
    "home/me/.git-credentials": "x",
    "home/me/.netrc": "x",
    "home/me/.pgpass": "x",
    "home/me/.cache/huggingface/stored_tokens": "x",
    "home/me/.config/gh/hosts.yml": "x",
    "home/me/.config/rclone/rclone.conf": "x",
    "home/me/.local/share/fish/fish_history": "x",
    "home/me/.ssh/authorized_keys": "x",
    "home/me/.config/gcloud/credentials.db": "x",
    "home/me/app/.git/HEAD": "x",
    "home/me/keys/deploy.pem": KEY,
    "home/me/id_rsa": KEY,
    "home/me/account.json": '{"type": "service_account", "private_key": "x"}',
    "root/.docker/config.json": "{}",
    "etc/ssh/ssh_host_ed25519_key": KEY,
    "srv/access_token": "x",
}
PLAIN = {
    "home/me/app/train.py": "x",
    "home/me/app/.env.example": "A=",
    "home/me/app/.gitignore": "x",
    "home/me/data.json": "{}",
    "home/me/cert.pem": "-----BEGIN CERTIFICATE-----",
    "opt/conda/lib/python3.11/site-packages/x/test.key": KEY,
    "etc/ssh/sshd_config": "x",
    "usr/lib/thing/.env": "x",
}


def test_what_is_private_is_gone_and_all_else_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "kept").touch()
    base = tmp_path / "disk"
    for name, text in {**PRIVATE, **PLAIN}.items():
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_text(text)
    (base / "home/me/code").mkdir()
    (base / "home/me/code/.git").symlink_to(elsewhere)
    (base / "home/me/linked").symlink_to(elsewhere)
    builder.clean(base)
    left = {path.relative_to(base).as_posix() for path in base.rglob("*") if path.is_file()}
    assert left == set(PLAIN)
    assert not (base / "home/me/code/.git").is_symlink() and (elsewhere / "kept").exists()
    assert f"hostler| removed {base}/home/me/.env\n" in capsys.readouterr().out


def test_workers_know_the_environment_by_the_same_name(tmp_path: Path) -> None:
    (tmp_path / "needs.txt").write_text("numpy\n-r more.txt\n")
    (tmp_path / "more.txt").write_text("é\n")
    wishes = requirements.read(tmp_path / "needs.txt")
    theirs = wishes.key(python_env._facts(sys.executable), "")
    assert builder.env_key(wishes.text.decode("utf-8", "surrogateescape"), sys.executable) == theirs


def test_an_emulated_vm_is_its_folder_and_never_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GCE_METADATA_HOST", "127.0.0.1:1")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert builder.root() == tmp_path
    monkeypatch.setenv("HOME", "/root")
    with pytest.raises(builder.Broken, match="neither on a VM nor on an emulated one"):
        builder.root()


def test_vm_restarted_in_the_middle_is_not_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(builder, "report", said.append)
    told = {
        "word": "w",
        "seconds": 60,
        "packages": "",
        "script": "",
        "clean": False,
        "pythons": [sys.executable],
    }
    mark = tmp_path / "var/lib/hostler-image"
    mark.parent.mkdir(parents=True)
    mark.write_text("w")
    with pytest.raises(builder.Broken, match="restarted"):
        builder.prepare(told, tmp_path)
    mark.write_text("of the image that this one begins with")
    builder.prepare(told, tmp_path)
    assert said == ["began"] and not mark.exists()


def test_an_image_that_no_worker_starts_on_is_none() -> None:
    with pytest.raises(builder.Broken, match=r"no Python 3\.10"):
        builder.check_python(["/nowhere/python3", "false"])
    builder.check_python(["/nowhere/python3", sys.executable])
