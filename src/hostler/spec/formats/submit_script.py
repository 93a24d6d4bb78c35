"""A submit script whose last command trains on the file it is given: `python train.py $1`. Pure.

The program gives way to the script's arguments, which are the worker's command; all other lines stay. Its
words, with the run's own file of parameters for `$1`, are what each run executes.
"""

from __future__ import annotations

import re

from hostler.frozen import dataclass
from hostler.spec.formats import shell

_FIRST = r"(?:\"\$\{?1\}?\"|\$\{1\}|\$1(?!\d))"
_COMMAND = re.compile(
    rf"""
    (?P<indent>\s*)
    (?P<before>(?:\w+=(?:'[^']*'|"[^"]*"|[^\s'"])*\s+)*)      # assignments
    (?P<launcher>(?:exec\s+|time\s+|nohup\s+|srun\s+(?:-[^\n]*?\s(?=\S*(?:python|/)))?)?)
    (?P<program>[^\s#|;&<>=][^#|;&<>\n]*?{_FIRST}[^#|;&<>\n]*?)
    (?P<after>\s*(?:\d?[<>|&;].*|\#.*)?)
    """,
    re.VERBOSE,
)
_SHELLS = re.compile(r"(?:echo|printf|cd|mkdir|export|source|\.|test|\[|if|for|while|set|local)\s")
PARAMETERS = "{params_file}"


@dataclass(frozen=True)
class SubmitScript:
    """`text`: the script with its arguments where the program stood. `ends_there`: nothing follows, so that
    the worker takes the place of the shell."""

    program: str
    text: str
    ends_there: bool

    def words(self) -> tuple[str, ...] | None:
        """The program's command line for a run; None if only a shell could read it."""
        plain = re.sub(_FIRST, "HOSTLER_PARAMETERS", self.program)
        words = shell.words(plain) if shell.is_plain(plain) else []
        return tuple(word.replace("HOSTLER_PARAMETERS", PARAMETERS) for word in words) or None


def find(text: str) -> SubmitScript | None:
    """The script's last program that takes `$1`; None if there is none."""
    lines = text.replace("\r\n", "\n").replace("\\\n", " ").split("\n")
    for at in reversed(range(len(lines))):
        command = _COMMAND.fullmatch(lines[at])
        if command and not _SHELLS.match(command["program"]):
            return _replaced(lines, at, command)
    return None


def _replaced(lines: list[str], at: int, command: re.Match[str]) -> SubmitScript:
    rest = [line for line in lines[at + 1 :] if line.strip() and not line.strip().startswith("#")]
    alone = not rest and not command["launcher"] and not command["after"].partition("#")[0].strip()
    launcher = "exec " if alone else command["launcher"]
    line = f'{command["indent"]}{command["before"]}{launcher}"$@"{command["after"]}'
    text = "\n".join([*lines[:at], line, *lines[at + 1 :]])
    return SubmitScript(command["program"].strip(), text if text.endswith("\n") else f"{text}\n", alone)
