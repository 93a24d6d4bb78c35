"""Values in a shell script that nobody else should know, each replaced by a variable. Pure.

The script does the same with it, where the variable is set. What is replaced stands after an option, a name
or a header that says what it is, in an address, behind a login, or has the form of a known key. What a shell
fills in itself (`$TOKEN`, `$(cat file)`) is not a value, nor is what a program inside of it computes
(`login(key=args.key)`), the path of a file, or the name of a secret elsewhere: these stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from hostler.frozen import dataclass
from hostler.spec.formats import private, quoting

_GENERIC = ("TOKEN", "KEY", "PASSWORD", "SECRET", "LOGIN", "API_KEY")
_ASSIGNED = re.compile(r"(?:^|[\s;|(])([A-Za-z_]\w*)=[\"']?$")
_CALL = re.compile(r"\w\((?:[^()\n]|\([^()\n]*\))*$")  # inside of the brackets of one
_ELSEWHERE = re.compile(r"\b(?:secrets|secretsmanager)\b[^\n;|]*$")  # gcloud secrets … --secret=NAME
_NOT_OURS = ("PATH", "HOME", "USER", "SHELL", "PWD")


@dataclass(frozen=True)
class Withheld:
    """`names` are the variables that it needs now, each with where its value stood, in words."""

    text: str
    names: dict[str, str]
    left: tuple[str, ...] = ()  # what could not be taken out, in words


@dataclass(frozen=True)
class _SecretSpan:
    start: int
    end: int
    name: str
    where: str


def withhold(text: str) -> Withheld:
    """The script without such values."""
    withheld = _withhold(text)
    return _withhold(quoting.opened(text)) if withheld.left else withheld


def _withhold(text: str) -> Withheld:
    stands = quoting.standing(text)
    names, made, remaining, at = dict[str, str](), list[str](), list[str](), 0
    for spelling in _with_names(text, stands, _apart(sorted(_found(text, stands), key=_order))):
        start, end = _quoted(text, stands, spelling.start, spelling.end)
        put = "..." if stands[start] == quoting.COMMENT else quoting.in_place(spelling.name, stands[start])
        if not put:
            remaining.append(spelling.where)
            continue
        if stands[start] != quoting.COMMENT:
            names.setdefault(spelling.name, spelling.where)
        made += [text[at:start], put]
        at = end
    return Withheld("".join([*made, text[at:]]), names, tuple(dict.fromkeys(remaining)))


def doubtful(text: str) -> list[str]:
    """Options and logins, by name, that may hold a secret and could not be decided."""
    found = []
    for match in _each(OPTION, text):
        value = _value(match)
        if private.may_be_secret(match["n"], value) and not private.is_secret(match["n"], value):
            found.append(f"--{match['n']}")
    for line in re.split(r"\n|;|&&", text):
        words = line.split()
        at = next(
            (n for n, word in enumerate(words) if word in ("login", "passwd", "--with-token")), len(words)
        )
        given = [word for word in words[at + 1 :] if not word.startswith("-")]
        if given and "$" not in line and not line.lstrip().startswith("#"):
            found.append(" ".join(words[: at + 1][:3]))
    return list(dict.fromkeys(found))


def _found(text: str, stands: list[str]) -> Iterator[_SecretSpan]:
    for name, pattern in LOGINS:
        for match in pattern.finditer(text):
            if private.is_text(_value(match)):
                tool = name or _tool(text, match.start(), match.end(), "TOKEN")
                yield _SecretSpan(*_span(match), tool, f"a login ({tool.partition('_')[0].lower()})")
    for pattern in (HEADER, OPTION, NAMED, DEFAULT, SETS):
        for match in _each(pattern, text):
            headed = pattern is not HEADER and HEADED.fullmatch(match["n"])
            if headed or not _tells(pattern, match["n"], _value(match)):
                continue
            if not _is_code(text, stands, match) and not _is_elsewhere(text, match):
                whole = match.span() if pattern is DEFAULT else _span(match)
                yield _SecretSpan(*whole, _named(text, match), _where(match))
    for match in USER.finditer(text):
        user, colon, password = _value(match).partition(":")
        if colon and private.is_text(password):
            start, end = _span(match)
            yield _SecretSpan(start + len(user) + 1, end, "PASSWORD", "the password after -u")
    yield from _addresses(text)
    for name, shape in private.SHAPES.items():
        for match in shape.finditer(text):
            yield _SecretSpan(
                *match.span(), _assigned(text, match.start()) or name, "what has the form of a key"
            )


def _tells(pattern: re.Pattern[str], name: str, value: str) -> bool:
    """Variables of the environment are written large, and there a name says enough."""
    variable = pattern in (NAMED, DEFAULT) and name.isupper() and private.is_variable(name)
    return private.is_secret(name, value) or (variable and private.is_text(value))


def _is_code(text: str, stands: list[str], one: re.Match[str]) -> bool:
    """In a program inside of quotes or a document, a text has quotes of its own; what has none is code."""
    group = _group(one)
    if one.re is not NAMED or group[-1] != "b" or stands[one.start("n")] in (quoting.BARE, quoting.COMMENT):
        return False
    if group == "_b":  # behind a colon, where only YAML has texts without quotes, and names without
        return text[one.end("n")] in "\\\"'" and not private.looks_random(one[group])
    computed = one[group].endswith("[") or text[one.end(group) :][:1] == "("
    return computed or bool(_CALL.search(text, max(0, one.start("n") - 300), one.start("n")))


def _is_elsewhere(text: str, one: re.Match[str]) -> bool:
    """Whether it is the name by which a secret is asked for."""
    if one.re is not OPTION or one["n"] != "secret":
        return False
    return bool(_ELSEWHERE.search(text, max(0, one.start() - 300), one.start()))


def _addresses(text: str) -> Iterator[_SecretSpan]:
    """`https://user:password@host`, `https://token@host`."""
    for match in ADDRESS.finditer(text):
        user, colon, password = match["who"].partition(":")
        start, end = match.span("who")
        if colon and password and password != "x-oauth-basic":
            start += len(user) + 1
        elif colon or match["scheme"].endswith(("http", "https")):
            end = start + len(user)
        else:
            continue
        if private.is_text(text[start:end]):
            yield _SecretSpan(start, end, "TOKEN", "what stands before the @ of an address")


def _apart(found: list[_SecretSpan]) -> Iterator[_SecretSpan]:
    """The findings that do not overlap; of two, the first to begin."""
    end = -1
    for span in found:
        if span.start >= end and span.end > span.start:
            yield span
            end = span.end


def _order(one: _SecretSpan) -> tuple[int, int]:
    return one.start, -one.end


def _each(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Every match; the value of one name may hold another one."""
    match = pattern.search(text)
    while match:
        yield match
        match = pattern.search(text, match.end("n"))


def _with_names(text: str, stands: list[str], found: Iterable[_SecretSpan]) -> list[_SecretSpan]:
    """Findings with a name for each value: of two values under one name, the assigned one keeps it."""
    every, values, names = list(found), dict[str, str](), dict[int, str]()
    for one in sorted(every, key=lambda one: (_assigned(text, one.start) != one.name, one.start)):
        value, made, n = text[one.start : one.end], one.name, 2
        while values.get(made, value) != value:
            made, n = f"{one.name}_{n}", n + 1
        if stands[one.start] != quoting.COMMENT:
            values[made] = value
        names[one.start] = made
    return [replace(one, name=names[one.start]) for one in every]


def _span(one: re.Match[str]) -> tuple[int, int]:
    return one.span(_group(one))


def _value(one: re.Match[str]) -> str:
    """As it is judged: a dollar that the shell leaves alone is a letter."""
    value, group = one[_group(one)], _group(one)
    return re.sub(r"[$`]", "x", value) if group[-1] == "s" else re.sub(r"\\[$`]", "x", value)


def _group(one: re.Match[str]) -> str:
    return next(name for name in one.re.groupindex if name.strip("_") in "edsb" and one[name] is not None)


def _quoted(text: str, stands: list[str], start: int, end: int) -> tuple[int, int]:
    """With the shell's own quotes around it, where nothing else is in them."""
    mark = text[start - 1 : start]
    whole = mark and mark in "'\"" and text[end : end + 1] == mark and stands[start] == mark
    return (start - 1, end + 1) if whole and stands[start - 1] == quoting.BARE else (start, end)


def _named(text: str, one: re.Match[str]) -> str:
    """The variable for what a name gives: the name itself, or the one that the tool looks at."""
    if one.re is DEFAULT:
        return one["n"]
    if given := _assigned(text, one.start() + len(one[0]) - len(one[0].partition("=")[2])):
        return given
    plain = re.sub(r"[^A-Za-z0-9_]", "_", one["n"].rpartition(".")[2]).strip("_").upper()
    plain = "AUTHORIZATION" if plain.endswith("AUTHORIZATION") else plain
    plain = "PASSWORD" if plain in _NOT_OURS else f"_{plain}" if plain[:1].isdigit() else plain
    return _tool(text, one.start(), one.end(), plain) if plain in _GENERIC else plain


def _assigned(text: str, at: int) -> str:
    match = _ASSIGNED.search(text[max(0, at - 80) : at])
    return match[1] if match and match[1] not in _NOT_OURS else ""


def _tool(text: str, start: int, end: int, otherwise: str) -> str:
    last = text.find("\n", end)
    line = text[max(text.rfind(sign, 0, start) for sign in "\n;&") + 1 : last if last >= 0 else len(text)]
    return next((name for tool, name in TOOLS if tool.search(line)), otherwise)


def _where(one: re.Match[str]) -> str:
    if one.re is OPTION:
        return f"the value of --{one['n'].lstrip('-')}"
    return f"the header {one['n']}" if one.re is HEADER else f"the value of {one['n']}"


# How shell scripts give a secret to somebody: options, names, headers, addresses, logins. Pure.
#
# The groups `e`, `d`, `s` and `b` (or with a `_` before) are the value, by how it is quoted; `n` is its name.


_QUOTED = r"""\\"(?P<e>[^"\\]*)\\"|"(?P<d>(?:\\.|[^"\\])*)"|'(?P<s>[^']*)'"""
_BARE = r"""[^\s"'|&;<>()`\\]{1,16384}"""  # bounds, here and below: some text files have one line
_VALUE = rf"(?:{_QUOTED}|(?P<b>(?!-){_BARE}))"
_ANY = rf"(?:{_QUOTED}|(?P<b>{_BARE}))"  # behind `=` it may begin with a dash
_ITEM = rf"(?:{_QUOTED}|(?P<b>[^\s\"'|&;<>()`,}}\\]+))".replace("P<", "P<_")
_GAP = r"(?:[ \t]|\\\n)+"
_REST = r"[^\n;&|]{0,300}?"
OPTION = re.compile(
    rf"(?<![\w-])--?(?P<n>[A-Za-z][\w.-]*)(?:=(?:{_ANY})|{_GAP}{_VALUE.replace('P<', 'P<_')})"
)
NAMED = re.compile(
    rf"(?<![\w.$-])[+~]*(?P<n>[A-Za-z_][\w.-]*)\\?[\"']?[ \t]*(?:=[ \t]*{_ANY}|:(?!//)[ \t]*{_ITEM})"
)
DEFAULT = re.compile(r"\$\{(?P<n>\w+):?[-=](?P<b>[^}$`]+)\}")
HEADED = re.compile(r"(?i)(?:proxy-)?authorization|cookie")
_SCHEME = "(?:bearer|token|basic|digest|apikey)"
HEADER = re.compile(
    rf"(?i)\b(?P<n>{HEADED.pattern[4:]})[ \t]*:[ \t]*(?:{_SCHEME}[ \t]+)?(?P<b>(?!{_SCHEME}\b)[^\s\"'$`]+)"
)
ADDRESS = re.compile(r"""\b(?P<scheme>[a-z][a-z0-9+.-]{0,30})://(?P<who>[^\s/"'`]{1,300})@""")
USER = re.compile(rf"\b(?:curl|wget|https?)\b{_REST}[ \t](?:-u|--user)[ \t=]*{_VALUE}")
_SAYS = r"\b(?:echo|printf)[ \t]+(?:-n[ \t]+)?"
_HOLDS = (
    r"(?:token|credentials?|secrets?|api_?key)(?:\.\w+)?[\"']?(?=[\s;&|)]|$)"  # how such a file is called
)
_LOGIN = (  # what is given to a program that logs in, and by which variable that program knows it
    (
        "WANDB_API_KEY",
        rf"\bwandb[ \t]+login\b(?:[ \t]+(?:--(?:host|base-url)(?:=|[ \t]+)\S+|-\S+))*[ \t]+{_VALUE}",
    ),
    ("DOCKER_PASSWORD", rf"\b(?:docker|podman)[ \t]{_REST}\blogin\b{_REST}[ \t]-p[ \t=]*{_VALUE}"),
    ("SSHPASS", rf"\bsshpass[ \t]+-p[ \t]*{_VALUE}"),
    ("NETRC_PASSWORD", rf"\blogin\s+\S+\s+password\s+{_VALUE}"),
    ("", rf"\blogin\((?:\w+[ \t]*=[ \t]*)?(?:{_QUOTED})"),
    ("", rf"{_SAYS}{_VALUE}[ \t]*\|{_REST}(?:\b(?:login|auth)\b(?!\.)|--with-token|-stdin\b)"),
    ("PASSWORD", rf"{_SAYS}{_VALUE}[ \t]*\|[ \t]*sudo[ \t]+-\w*S"),
    ("", rf"{_SAYS}{_VALUE}[ \t]*>>?[ \t]*[^\s;&|]{{0,300}}{_HOLDS}"),
    ("", rf"\b(?:login|auth)\b{_REST}<<<[ \t]*{_VALUE}"),
)
LOGINS = tuple((name, re.compile(pattern)) for name, pattern in _LOGIN)
SETS = re.compile(
    rf"\b(?:config|configure|modify|set)\b{_REST}[ \t]"
    rf"(?P<n>[\w.-]{{0,60}}(?:key|key_id|token|password|secret))[ \t]+{_VALUE}"
)
TOOLS = (
    (re.compile(r"\bwandb\b"), "WANDB_API_KEY"),
    (re.compile(r"\bhuggingface|\bhf\b"), "HF_TOKEN"),
    (re.compile(r"\bgh\b"), "GH_TOKEN"),
    (re.compile(r"\b(?:docker|podman)\b"), "DOCKER_PASSWORD"),
    (re.compile(r"\bcomet\b"), "COMET_API_KEY"),
    (re.compile(r"\bkaggle\b"), "KAGGLE_KEY"),
)
