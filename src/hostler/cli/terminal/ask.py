"""Asks before something cannot be taken back; without anybody to ask, says how to say yes."""

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
        raise UsageError("there is nobody to ask", hint="-y answers yes")
    return answer.strip().lower() in ("y", "yes")


def asked(question: str) -> bool:
    """The same, where silence is no: what happens then is said anyway."""
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
        raise UsageError("there is nobody to ask", hint="-y takes the defaults")
    return answer.strip() or default
