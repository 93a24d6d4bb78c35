"""`python -m hostler.sdk.notebook FILE.ipynb [--KEY VALUE …]`: a notebook as a script.

It runs in a kernel of this Python, in its own folder; what its cells print is printed here, so that metrics
are found in it. The notebook with its outputs is written after every cell: into the run's outputs, or beside
the file where no worker started it.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hostler import env
from hostler.errors import HostlerError, MachineError, UsageError
from hostler.records.run.handoff import Handoff
from hostler.spec import notebook

PYTHON = "python3"  # the kernel of this Python
QUIET = "--IPKernelApp.log_level=ERROR"  # it warns of its own ports, which are those of this machine alone
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def main(words: Sequence[str]) -> int:
    try:
        if not words:
            raise UsageError(
                "no notebook was named", hint="python -m hostler.sdk.notebook train.ipynb --lr 0.1"
            )
        return _execute(Path(words[0]), notebook.parameters(words[1:]))
    except HostlerError as error:
        print(f"hostler: {error.message}" + (f"\n  → {error.hint}" if error.hint else ""), file=sys.stderr)
        return error.exit_code


def _execute(path: Path, params: dict[str, Any]) -> int:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    made = notebook.injected(notebook.read(text, path.name), params, path.name)
    try:
        import ipykernel  # noqa: F401
        import nbclient
        import nbformat
        from jupyter_client.kernelspec import NoSuchKernel
        from nbclient.exceptions import CellExecutionError, DeadKernelError
    except ModuleNotFoundError as error:
        raise MachineError(
            f"a notebook needs the package {error.name}", hint="pip install 'hostler[notebooks]'"
        ) from None
    book, kept = nbformat.reads(json.dumps(made), as_version=4), _kept(path)

    class Client(nbclient.NotebookClient):  # type: ignore[misc]
        def output(self, outs: Any, msg: Any, display_id: Any, cell_index: Any) -> Any:
            if msg["msg_type"] == "stream":
                stream = sys.stderr if msg["content"]["name"] == "stderr" else sys.stdout
                print(msg["content"]["text"], end="", file=stream, flush=True)
            return super().output(outs, msg, display_id, cell_index)

    def save(**given: Any) -> None:
        beside = kept.with_name(f".{kept.name}.new")
        nbformat.write(book, str(beside))
        os.replace(beside, kept)

    folder = {"metadata": {"path": str(path.resolve().parent)}}
    kernel = _kernel(made)
    client = Client(book, timeout=None, kernel_name=kernel, resources=folder, on_cell_executed=save)
    client.extra_arguments = [QUIET] if kernel == PYTHON else []
    stopped = _pass_on_stops(client)
    try:
        client.execute()
    except CellExecutionError as error:
        if error.ename == "SystemExit":
            return _exit_code(error.evalue)
        print(_COLOUR.sub("", error.traceback), file=sys.stderr)
        return 1
    except NoSuchKernel as error:
        raise UsageError(
            f"{path.name} wants the kernel {error.name}, which is not installed here",
            hint="jupyter kernelspec list shows those that are",
        ) from None
    except DeadKernelError:
        if stopped:
            return 128 + signal.SIGTERM
        print("hostler: the notebook's kernel died", file=sys.stderr)
        return 1
    finally:
        save()
    return 0


def _exit_code(value: str) -> int:
    """The exit code of a cell that left by sys.exit, as Python itself makes it of the value."""
    if value in ("", "None", "False"):
        return 0
    if value.lstrip("-").isdigit():
        return int(value) & 0xFF
    print(value, file=sys.stderr)
    return 1


def _kernel(book: dict[str, Any]) -> str:
    """The kernel of this Python for a notebook of Python; another language's by its name."""
    spec = (book.get("metadata") or {}).get("kernelspec") or {}
    return str(spec.get("name") or PYTHON) if spec.get("language", "python") != "python" else PYTHON


def _kept(path: Path) -> Path:
    folder = env.run_dir()
    return (
        path.with_name(f"{path.stem}.executed.ipynb")
        if folder is None
        else Handoff(folder).output / path.name
    )


def _pass_on_stops(client: Any) -> list[int]:
    """SIGTERM goes to the kernel, whose script saves and leaves; the list has it from then on."""
    pass_on_stops: list[int] = []

    def stop(number: int, frame: Any) -> None:
        pass_on_stops.append(number)
        process = getattr(getattr(client.km, "provisioner", None), "process", None)
        if process is None:
            raise SystemExit(128 + number)
        os.kill(process.pid, signal.SIGTERM)

    signal.signal(signal.SIGTERM, stop)
    return pass_on_stops


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
