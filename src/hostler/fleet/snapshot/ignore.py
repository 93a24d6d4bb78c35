"""Decides which files of a project are left out: `.gitignore` and `.hostlerignore`, by git's rules.

Matching is pure. A name is relative to the project, '/'-separated, and may hold undecodable bytes as
surrogates. `.hostlerignore` has the last word over every `.gitignore`, so that it can take back by `!`.
As in git, nothing inside an ignored folder is looked at.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from hostler.frozen import dataclass

OWN_FILE = ".hostlerignore"
GIT_FILE = ".gitignore"
NEVER = frozenset({".git", ".hostler"})  # no rule brings these back
USUALLY = """
__pycache__/
*.pyc
*.pyo
.venv/
node_modules/
.mypy_cache/
.pytest_cache/
.ruff_cache/
.hypothesis/
.ipynb_checkpoints/
.tox/
.nox/
.hostler-demo/
.DS_Store
"""


@dataclass(frozen=True)
class IgnoreRule:
    """A line of an ignore file; `base` is the folder of that file ('' or ending in '/')."""

    pattern: re.Pattern[str]
    negated: bool
    folders_only: bool
    by_name: bool  # matches the last part alone, at any depth
    base: str
    above: str = ""  # for a rule of a folder above the project: the way from there down to it
    text: str = ""  # as it stands in its file
    origin: str = ""  # its file and line

    def matches(self, name: str, is_dir: bool) -> bool:
        if (self.folders_only and not is_dir) or not name.startswith(self.base):
            return False
        text = name.rpartition("/")[2] if self.by_name else self.above + name[len(self.base) :]
        return self.pattern.fullmatch(text) is not None


@dataclass(frozen=True)
class Ignore:
    """The rules in force in one folder."""

    git: tuple[IgnoreRule, ...] = ()
    own: tuple[IgnoreRule, ...] = ()
    usual: tuple[IgnoreRule, ...] = ()
    tracked: frozenset[str] = frozenset()  # what git tracks although its rules ignore it, and their folders
    only_tracked: bool = False  # this folder is ignored by git and was entered for what is tracked in it

    def ignores(self, name: str, is_dir: bool) -> bool:
        last = name.rpartition("/")[2]
        if last in NEVER:
            return True
        if not self._spoken_of(last):
            return self._by_git(name, is_dir) if self.only_tracked else False
        verdict = decide(self.own, name, is_dir)
        if verdict is not None:
            return verdict
        return bool(decide(self.usual, name, is_dir)) or self._by_git(name, is_dir)

    def why(self, name: str, is_dir: bool) -> str:
        """The rule by which a name is ignored, as a person finds it."""
        rules = [*self.git, *self.usual, *self.own]  # the last has the last word
        rule = next((rule for rule in reversed(rules) if rule.matches(name, is_dir)), None)
        if rule is None or not rule.origin:
            return f"a rule of hostler's own{f' ({rule.text})' if rule else ''}"
        return f"{rule.text} in {rule.origin}"

    def inside(self, name: str, folder: Path) -> Ignore:
        """The rules in force in a folder of this one that is not ignored."""
        base = f"{name}/" if name else ""
        return replace(
            self,
            git=self.git + parse(_text(folder / GIT_FILE), base, f"{base}{GIT_FILE}"),
            own=self.own + parse(_text(folder / OWN_FILE), base, f"{base}{OWN_FILE}"),
            only_tracked=bool(name) and self._matched_by_git(name) and decide(self.own, name, True) is None,
        )

    def _spoken_of(self, last: str) -> bool:
        """False: no rule can match, whatever the folder. Most files are told by this alone."""
        by_name, by_path = self._patterns
        return by_path or by_name.fullmatch(last) is not None

    @cached_property
    def _patterns(self) -> tuple[re.Pattern[str], bool]:
        """All rules that look at the last part, as one; and whether there are others."""
        rules = (*self.git, *self.own, *self.usual)
        texts = [f"(?:{rule.pattern.pattern})" for rule in rules if rule.by_name]
        return re.compile("|".join(texts) or NOTHING, re.DOTALL), any(not rule.by_name for rule in rules)

    def _by_git(self, name: str, is_dir: bool) -> bool:
        if name in self.tracked:
            return False
        return self.only_tracked or bool(decide(self.git, name, is_dir))

    def _matched_by_git(self, name: str) -> bool:
        return self.only_tracked or bool(decide(self.git, name, True))


def for_project(folder: Path, top: Path | None = None, tracked: Sequence[str] = ()) -> Ignore:
    """The rules in force in a project's own folder; `top` is the root of the git tree it lies in."""
    rules: tuple[IgnoreRule, ...] = ()
    if top is not None:
        above = [top, *reversed([p for p in folder.parents if top in p.parents])] if top != folder else []
        exclude = top / ".git" / "info" / "exclude"
        rules = _as_seen_from(folder, top, parse(_text(exclude), origin=".git/info/exclude"))
        for path in above:
            rules += _as_seen_from(folder, path, parse(_text(path / GIT_FILE), origin=str(path / GIT_FILE)))
    kept = frozenset(part for name in tracked for part in _with_parents(name))
    return Ignore(git=rules, usual=parse(USUALLY), tracked=kept).inside("", folder)


def is_taken_back(project: Path, name: str) -> bool:
    """Whether a line of .hostlerignore asks for the file by `!`."""
    rules, parts = Ignore().inside("", project), name.split("/")
    for n in range(1, len(parts)):
        inner = "/".join(parts[:n])
        rules = rules.inside(inner, project / inner)
    return decide(rules.own, name, False) is False


def parse(text: str, base: str = "", origin: str = "") -> tuple[IgnoreRule, ...]:
    """The rules of one ignore file; `origin` is its name, for people."""
    lines = text.removeprefix("\ufeff").split("\n")
    rules = (_rule(line.removesuffix("\r"), base, origin, n) for n, line in enumerate(lines, start=1))
    return tuple(rule for rule in rules if rule is not None)


def decide(rules: Sequence[IgnoreRule], name: str, is_dir: bool) -> bool | None:
    """True: ignored, False: taken back, None: no rule speaks of it. The last rule that matches decides."""
    for rule in reversed(rules):
        if rule.matches(name, is_dir):
            return not rule.negated
    return None


def _rule(line: str, base: str, origin: str, number: int) -> IgnoreRule | None:
    text = written = _without_trailing_spaces(line)
    if not text or text.startswith("#"):
        return None
    negated = text.startswith("!")
    text = text[1:] if negated else text
    folders_only = text.endswith("/")
    text = text[:-1] if folders_only else text
    by_name = "/" not in text
    if not text:
        return None
    pattern = re.compile(_regex(text.removeprefix("/"), by_name), re.DOTALL)
    origin = f"{origin} (line {number})" if origin else ""
    return IgnoreRule(pattern, negated, folders_only, by_name, base, text=written, origin=origin)


def _without_trailing_spaces(line: str) -> str:
    end = len(line)
    while end and line[end - 1] == " " and not _escaped(line, end - 1):
        end -= 1
    return line[:end]


def _escaped(line: str, at: int) -> bool:
    before = line[:at]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 1


NOTHING = "(?!)"
SPECIAL = "*?[\\"


def _regex(glob: str, by_name: bool) -> str:
    """Git's wildmatch as a regular expression over the whole text."""
    out: list[str] = []
    at = 0
    while at < len(glob):
        char = glob[at]
        if char == "*":
            part, at = _stars(glob, at, by_name)
        elif char == "?":
            part, at = "[^/]", at + 1
        elif char == "[":
            part, at = _class(glob, at)
        elif char == "\\":
            part = re.escape(glob[at + 1]) if at + 1 < len(glob) else NOTHING
            at += 2
        else:
            part, at = re.escape(char), at + 1
        out.append(part)
    return "".join(out)


def _stars(glob: str, at: int, by_name: bool) -> tuple[str, int]:
    end = at
    while end < len(glob) and glob[end] == "*":
        end += 1
    # git cuts off a literal beginning before it matches, so that "a**" is as "**" after it
    begins = glob[at - 1 : at] == "/" or not set(glob[:at]) & set(SPECIAL)
    whole_part = begins and (end == len(glob) or glob[end] == "/")
    if by_name or end - at < 2 or not whole_part:
        return "[^/]*", end
    return ("(?:.*/)?", end + 1) if end < len(glob) else (".*", end)


_POSIX = {
    "alnum": "A-Za-z0-9",
    "alpha": "A-Za-z",
    "blank": " \\t",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": "\\s",
    "upper": "A-Z",
    "xdigit": "A-Fa-f0-9",
}


def _class(glob: str, start: int) -> tuple[str, int]:
    """A bracket expression; an unclosed one matches nothing, whatever follows."""
    at = start + 1
    negated = at < len(glob) and glob[at] in "!^"
    at += negated
    body: list[str] = []
    first = at
    while at < len(glob) and (glob[at] != "]" or at == first):
        part, at = _member(glob, at)
        body.append(part)
    if at >= len(glob):
        return NOTHING, len(glob)
    inner = "".join(body)
    if not inner:
        return ("[^/]" if negated else NOTHING), at + 1
    return f"(?!/)[{'^' if negated else ''}{inner}]", at + 1


def _member(glob: str, at: int) -> tuple[str, int]:
    posix = re.compile(r"\[:([a-z]+):\]").match(glob, at)
    if posix:
        return _POSIX.get(posix[1], ""), posix.end()
    low, at = _one(glob, at)
    if at + 1 < len(glob) and glob[at] == "-" and glob[at + 1] != "]":
        high, at = _one(glob, at + 1)
        return (f"{re.escape(low)}-{re.escape(high)}" if low <= high else re.escape(low)), at
    return (re.escape(low) if low else ""), at


def _one(glob: str, at: int) -> tuple[str, int]:
    if glob[at] == "\\":
        return glob[at + 1 : at + 2], at + 2
    return glob[at], at + 1


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8", "surrogateescape")
    except OSError:
        return ""


def _with_parents(name: str) -> list[str]:
    parts = name.split("/")
    return ["/".join(parts[:n]) for n in range(1, len(parts) + 1)]


def _as_seen_from(folder: Path, above: Path, rules: tuple[IgnoreRule, ...]) -> tuple[IgnoreRule, ...]:
    """Rules of a folder above the project: anchored ones see the way down to the project as well."""
    way = folder.relative_to(above).as_posix()
    prefix = "" if way == "." else f"{way}/"
    return tuple(replace(rule, above=prefix) for rule in rules)
