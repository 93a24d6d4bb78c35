"""`hostler doctor`: checks store, machine and tools; each line says what to do.

This machine's checks are asked at the same time, each with little patience: together they take no longer than
the slowest of them.
"""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path

import click

from hostler import env, settings
from hostler.backends import registry
from hostler.backends.doctor import BAD, NONE, OK, WARN, Check
from hostler.cli.doctor import clock, clouds, credentials, fleets, packages, stores, this_machine
from hostler.cli.terminal import output
from hostler.cli.terminal.screen import paint
from hostler.spec.project import Project, default_store

COLOURS = {OK: "green", NONE: "", WARN: "yellow", BAD: "red"}
STORE = 10.0  # seconds for a store that does not answer: whoever asks the doctor waits
WIDTH = 10  # of what a line is about; a longer one, such as a host's name, has a line of its own


def command(remove: bool, yes: bool, store_url: str | None, as_json: bool) -> int:
    """Check store, machine, tools, credentials, versions, and the machines of fleets."""
    checks = []
    for check in _checks(store_url, remove=remove, yes=yes):
        if check in checks:  # a fleet and its cloud have the same trouble
            continue
        checks.append(check)
        if not as_json:
            click.echo("\n".join(lines(check, _columns())))
    if as_json:
        output.print_json([asdict(check) for check in checks])
    return int(any(check.level == BAD for check in checks))


def lines(check: Check, columns: int | None = None) -> list[str]:
    """Lines of a finding for a person; `columns`: of the terminal, where there is one."""
    level, indent = paint(f"{check.level:<4}", COLOURS[check.level]), " " * (WIDTH + 8)
    room = max(columns - len(indent), 30) if columns else None
    said = _wrapped(check.detail, room)
    todo = [f"{indent}{line}" for line in _wrapped(f"→ {check.todo}", room)] if check.todo else []
    if len(check.what) > WIDTH:
        return [f"{level}  {check.what}", *(indent + line for line in said), *todo]
    return [f"{level}  {check.what:<{WIDTH}}  {said[0]}", *(indent + line for line in said[1:]), *todo]


def _wrapped(text: str, room: int | None) -> list[str]:
    if room is None or len(text) <= room:
        return [text]
    return textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False) or [text]


def _columns() -> int | None:
    """Width to wrap at; None for a program or a file, where a finding stays one line."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _checks(store_url: str | None, *, remove: bool, yes: bool) -> Iterator[Check]:
    project, check = this_machine.project_file(Path.cwd())
    yield check
    url = store_url or env.store_url() or (project.store if project else default_store(Path.cwd()))
    yield from _at_once(_of_machine(project, url))
    yield from stores.store(url, min(settings.timing().retry, STORE))
    if project:
        yield from fleets.fleets(project, url)
        yield from clouds.clouds(project, url, remove=remove, yes=yes)


def _of_machine(project: Project | None, url: str) -> list[Callable[[], Iterable[Check]]]:
    fleets = list(project.fleets.values()) if project else []
    ways = [getattr(registry.part(name, "doctor"), "checks", None) for name in registry.BACKENDS]
    return [
        lambda: this_machine.machine(project),
        packages.versions,
        lambda: [clock.of_machine()],
        *(partial(check, fleets, url) for check in ways if check),
        lambda: credentials.credentials(fleets, url),
    ]


def _at_once(looks: list[Callable[[], Iterable[Check]]]) -> Iterator[Check]:
    with ThreadPoolExecutor(len(looks)) as pool:
        for found in pool.map(lambda look: list(look()), looks):
            yield from found
