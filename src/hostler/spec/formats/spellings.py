"""How shell scripts give a secret to somebody: options, names, headers, addresses, logins. Pure.

The groups `e`, `d`, `s` and `b` (or with a `_` before) are the value, by how it is quoted; `n` is its name.
"""

from __future__ import annotations

import re

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
