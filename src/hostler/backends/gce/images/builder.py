"""The build program of an image's temporary VM: packages, a person's script, cleaning, a report.

Sent as one text (`remote/standalone.py`) in the VM's metadata and run by whatever Python 3 its disk has.
Only `done` with the word that this very build was given counts as success: silence, a restart, a script
that fails, hangs or switches the VM off never do. The VM does not remove itself: Compute Engine does, at its
time limit.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import IO, Any

from hostler.backends.metadata import get_attribute, get_metadata, put_guest_attribute

DRAINED = 5.0  # seconds that output is waited for after the script has ended: it may have left daemons
SAY = "hostler| "  # before each line that a person should see
FACTS = "import sys, sysconfig; print(sys.version, sysconfig.get_platform(), sys.base_prefix)"
NEW_ENOUGH = "import sys; sys.exit(sys.version_info < (3, 10))"

FOLDERS = (".git", ".ssh", ".gnupg", ".aws", ".azure", ".kube")
FILES = (
    *(".env", ".netrc", ".git-credentials", ".pypirc", ".boto", "access_token", "kaggle.json"),
    *(".npmrc", ".pgpass", ".my.cnf", ".s3cfg", ".databrickscfg", ".dockercfg", ".comet.config"),
    *(".bash_history", ".zsh_history", ".sh_history", ".ash_history", ".history", ".python_history"),
    *(".viminfo", ".lesshst", ".wget-hsts", ".Rhistory", ".node_repl_history", ".sqlite_history"),
    *(".psql_history", ".mysql_history", ".rediscli_history"),
)
ENDS = (
    *(".config/gcloud", ".docker/config.json", ".huggingface/token", "huggingface/token"),
    *(".ipython/profile_default/history.sqlite", ".config/wandb", "huggingface/stored_tokens"),
    *(".config/gh/hosts.yml", ".config/rclone/rclone.conf", ".mlflow/credentials"),
    *("fish/fish_history", ".jupyter/jupyter_server_config.json", "jupyter_cookie_secret"),
)
SETTINGS = re.compile(r"\.env\.(?!example$|sample$|template$|dist$).+|ssh_host_.*_key(\.pub)?")
SECRET = re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----|\"private_key\"\s*:")
KEYS = re.compile(r"id_\w+|.*\.(pem|key|p12|ppk|json)")
READ = 1 << 16  # bytes of a file in which a key is looked for
NOT_OURS = ("proc", "sys", "dev", "run", "lib", "lib64", "boot", "snap", "etc/ssl", "usr/lib", "usr/share")
LIBRARY = re.compile(r"(^|/)(site-packages|dist-packages|lib/python3[^/]*|pkgs)(/|$)")


class Broken(Exception):
    """There will be no image; the text says why."""


def main() -> int:
    attribute = get_attribute("hostler-image")
    if get_metadata("instance/name") != attribute["name"]:
        print("hostler: failed: this is not the VM that was made for it", flush=True)
        return 1
    os.environ.setdefault("HOME", str(Path.home()))
    try:
        prepare(attribute, root())
    except Broken as error:
        say(f"failed: {error}")
        report(f"failed: {error}")
        return 1
    except Exception as error:
        report(f"failed: {type(error).__name__}: {error}")
        raise
    report(f"done {attribute['word']}")
    return 0


def prepare(told: dict[str, Any], base: Path) -> None:
    mark = base / "var" / "lib" / "hostler-image"
    if mark.exists() and mark.read_text() == told["word"]:
        raise Broken("the VM was restarted before it was ready")
    mark.parent.mkdir(parents=True, exist_ok=True)
    mark.write_text(told["word"])
    report("began")
    end = time.monotonic() + told["seconds"]
    if told["packages"]:
        install(told, get_attribute("hostler-packages"), end)
    if told["script"]:
        run_script(told["script"], get_metadata("instance/attributes/hostler-script"), end)
    if told["clean"]:
        clean(base)
    check_python(told["pythons"])
    mark.unlink()
    os.sync()


def root() -> Path:
    """Where the disk begins. An emulated VM is a folder, and nothing outside of it is touched."""
    if "GCE_METADATA_HOST" not in os.environ:
        return Path("/")
    path = Path(os.environ["HOME"]).absolute().parent
    if path == Path("/"):
        raise Broken("this program runs neither on a VM nor on an emulated one")
    return path


def run_script(name: str, text: str, end: float) -> None:
    """In a file of its own that is gone afterwards; by its own first line, or by bash."""
    folder = tempfile.mkdtemp()
    try:
        file = Path(folder) / "script"
        file.write_text(text)
        file.chmod(0o700)
        words = [str(file)] if text.startswith("#!") else ["/bin/bash", str(file)]
        code = run(words, name, end, cwd=os.environ["HOME"])
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if code:
        raise Broken(f"{name} ended with {code}")


def install(told: dict[str, Any], files: dict[str, str], end: float) -> None:
    """The environment that workers would make of the same file, where they look for it."""
    base = shutil.which("python3") or shutil.which("python")
    if base is None:
        raise Broken("the base image has no python3")
    cache = Path(told["cache"] or Path(os.environ["HOME"]) / ".cache" / "hostler").expanduser() / "envs"
    name = env_key(told["wishes"], base)
    place, folder = cache / f"{name}.image", tempfile.mkdtemp()
    try:
        for file, text in files.items():
            (Path(folder) / file).parent.mkdir(parents=True, exist_ok=True)
            (Path(folder) / file).write_text(text)
        make_env(base, place, end)
        pip = [str(place / "bin" / "python"), "-m", "pip", "install", "--no-input", "-r", told["packages"]]
        code = run(pip, "pip install", end, cwd=folder)
        if code:
            raise Broken(f"pip install -r {told['packages']} ended with {code}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if not (cache / name).is_symlink():
        (cache / name).symlink_to(place.name)


def make_env(base: str, place: Path, end: float) -> None:
    """Debian's Python has no venv before its package is there."""
    place.parent.mkdir(parents=True, exist_ok=True)
    words = [base, "-m", "venv", "--clear", str(place)]
    if run(words, "venv", end) == 0:
        return
    if shutil.which("apt-get"):
        run(["apt-get", "update", "-q"], "apt-get update", end)
        run(["apt-get", "install", "-y", "-q", "python3-venv"], "apt-get install", end)
    if run(words, "venv", end):
        raise Broken(f"{base} cannot make a virtual environment")


def env_key(wishes: str, base: str) -> str:
    """By which workers know an environment: what is wanted of which Python."""
    facts = subprocess.run([base, "-c", FACTS], stdout=subprocess.PIPE, check=True).stdout
    return hashlib.sha256(b"\0".join([wishes.encode("utf-8", "surrogateescape"), facts, b""])).hexdigest()[
        :40
    ]


def run(words: list[str], name: str, end: float, cwd: str | None = None) -> int:
    """Its exit code; killed with all it started if it takes too long."""
    env = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    process = subprocess.Popen(
        words,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    assert process.stdout is not None
    reader = threading.Thread(target=pass_on, args=(process.stdout,), daemon=True)
    reader.start()
    try:
        code = process.wait(max(0.0, end - time.monotonic()))
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        raise Broken(f"{name} had not ended when its time was over") from None
    reader.join(DRAINED)
    return code


def pass_on(lines: IO[bytes]) -> None:
    for line in lines:
        say(line.decode(errors="replace").rstrip())


def check_python(names: list[str]) -> None:
    """An image on which no worker starts is none."""
    for name in names:
        with contextlib.suppress(OSError):
            if subprocess.run([name, "-c", NEW_ENOUGH], stderr=subprocess.DEVNULL).returncode == 0:
                return
    raise Broken("it has no Python 3.10 or newer, which workers need")


def clean(base: Path) -> None:
    """Take away what is a person's: repositories' histories, keys, tokens, what was typed."""
    device, skipped = base.stat().st_dev, {str(base / name) for name in NOT_OURS}
    for place, folders, files in os.walk(str(base)):
        here = [name for name in folders if str(Path(place, name)) not in skipped]
        gone = [name for name in (*here, *files) if is_private(base, Path(place, name))]
        for name in gone:
            discard(Path(place, name))
        folders[:] = [
            name for name in here if name not in gone and os.lstat(Path(place, name)).st_dev == device
        ]


def is_private(base: Path, path: Path) -> bool:
    shown = path.relative_to(base).as_posix()
    if path.name in (*FOLDERS, *FILES) or SETTINGS.fullmatch(path.name) or shown.endswith(ENDS):
        return True
    plain = KEYS.fullmatch(path.name) and not LIBRARY.search(shown)
    if not plain or path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return bool(SECRET.search(file.read(READ)))


def discard(path: Path) -> None:
    say(f"removed {path}")
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(str(path))
    else:
        path.unlink()


def say(line: str) -> None:
    print(SAY + line, flush=True)


def report(state: str) -> None:
    """Report the state that the other end waits for; without a report it counts as failed there."""
    put_guest_attribute("image", state)


if __name__ == "__main__":
    sys.exit(main())
