"""Asks before a step that cannot be undone; without an answer, says how to agree."""

from __future__ import annotations

import sys

import click

from hostler.errors import UsageError


def ask(question: str, *, yes: bool) -> bool:
    """Whether the person agrees; `yes` is -y. The default is no."""
    if yes:
        return True
    click.echo(f"{question} [y/N] ", nl=False, err=True)
    answer = sys.stdin.readline()
    if not answer:
        click.echo("", err=True)
        raise UsageError("cannot ask: the input has ended", hint="-y answers yes")
    return answer.strip().lower() in ("y", "yes")


def asked(question: str) -> bool:
    """Whether the person agrees; no answer means no."""
    try:
        return ask(question, yes=False)
    except UsageError:
        return False


def ask_text(question: str, default: str, *, yes: bool) -> str:
    """The person's answer, or the default if it is empty."""
    if yes:
        return default
    click.echo(f"{question} [{default}]: " if default else f"{question}: ", nl=False, err=True)
    answer = sys.stdin.readline()
    if not answer:
        click.echo("", err=True)
        raise UsageError("cannot ask: the input has ended", hint="-y takes the defaults")
    return answer.strip() or default
