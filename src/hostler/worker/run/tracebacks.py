"""Python tracebacks found in a log: the one that ended the process, and what it says.

Pure. Knows chained tracebacks, output that a launcher has prefixed line by line (`[rank0]: `), launchers'
own tracebacks, which only say that a child failed, and those that rich and IPython draw.
"""

from __future__ import annotations

import re

from hostler.frozen import dataclass
from hostler.worker.run.drawn_tracebacks import HEADER, plain

LINKS = ("During handling of the above exception", "The above exception was the direct cause")
WRAPPERS = {
    "CellExecutionError",
    "ChildFailedError",
    "CalledProcessError",
    "ProcessRaisedException",
}  # a launcher's word for a child's
LONGEST = 200  # lines of one traceback
MORE = 2  # lines of a message below its first, where that says nothing
WIDEST = 2000  # characters of one line that matter

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_HEADER = re.compile(r"(?P<prefix>.{0,60}?)" + re.escape(HEADER))
_FRAME = re.compile(
    r'\s*(?:\|\s*)?(?:File "(?P<file>.+?)", line (?P<line>\d+)|(?P<cell>Cell In ?\[\d+\], line \d+))'
)
_LIBRARY = re.compile(
    r"<|.*(?:^|/)(?:site-packages|dist-packages|lib/python3[^/]*|hostler/(?:sdk|worker|train))/"
)
_ERROR = re.compile(r"(?P<kind>[A-Za-z_][\w.]*)(?::(?: (?P<text>.*))?)?")
_GOES_ON = re.compile(r":$|\bvalidation errors? for \S+$")  # a first line that only announces others
_SYNTAX = re.compile(r"(?:SyntaxError|IndentationError|TabError): ")


@dataclass(frozen=True)
class Traceback:
    """A traceback: its whole text, the exception, and the innermost frame."""

    text: str
    error: str  # type as printed, perhaps with its module
    message: str
    where: str  # file:line of the innermost frame
    own: str = ""  # the same of the innermost frame in the user's own files, or in a cell of a notebook
    cell: str = ""  # the innermost line of a notebook: `Cell In[3], line 5: the line`

    @property
    def name(self) -> str:
        """The exception's type without its module."""
        return self.error.rpartition(".")[2]

    @property
    def headline(self) -> str:
        return f"{self.error}: {self.message}" if self.message else self.error


def lines_of(text: str) -> list[str]:
    """Lines as a terminal would show them last: no colours or boxes, and of a progress bar its last state."""
    lines = _ANSI.sub("", text).split("\n")
    return plain([line.rstrip("\r").rpartition("\r")[2].rstrip()[:WIDEST] for line in lines])


def last(text: str) -> Traceback | None:
    """The traceback that ended the process whose output this is; None if there is none."""
    lines = lines_of(text)
    tracebacks = [traceback for at in _headers(lines) if (traceback := _read(lines, at)) is not None]
    telling = [one for one in tracebacks if one.name not in WRAPPERS]
    if telling:
        return telling[-1]
    return tracebacks[-1] if tracebacks else _bare_syntax_error(lines)


def _headers(lines: list[str]) -> list[int]:
    return [at for at, line in enumerate(lines) if _HEADER.fullmatch(line)]


def _read(lines: list[str], at: int) -> Traceback | None:
    """The traceback whose header is line `at`: its frames are indented, its exception is not."""
    match = _HEADER.fullmatch(lines[at])
    prefix = match["prefix"].replace("Original ", "") if match else ""  # torch quotes a worker's so
    body: list[str] = []
    below = _unprefixed(lines[at + 1 : at + LONGEST], prefix)
    for line in below:
        body.append(line)
        if line and not line[0].isspace():
            break
    error = _ERROR.fullmatch(body[-1]) if body else None
    if error is None:
        return None
    said = (error["text"] or "").strip()
    more = _more(said, below[len(body) :]) if error[0].endswith(":") or _GOES_ON.search(said) else []
    text = "\n".join([*_chained(lines, at, prefix), HEADER, *body, *more])
    message = " ".join(" ".join([said, *more]).split()) if more else said or _asserted(error["kind"], body)
    return Traceback(text, error["kind"], message, *_places(body), _cell(body))


def _more(said: str, below: list[str]) -> list[str]:
    """Lines of a message whose first one says nothing by itself; below one with a colon they are indented."""
    more = list[str]()
    for line in below:
        if len(more) == MORE or (more and not line.strip()) or (said.endswith(":") and line[:1].strip()):
            break
        more += [line] if line.strip() else []
    return more


def _asserted(kind: str, body: list[str]) -> str:
    """The line of code of an assertion that has no words."""
    code = next((line.strip() for line in reversed(body[:-1]) if line.strip(" ^~")), "")
    return code if kind == "AssertionError" and code.startswith("assert ") else ""


def _unprefixed(lines: list[str], prefix: str) -> list[str]:
    """Lines of one process among those of several, without its prefix."""
    bare = prefix.rstrip()
    return [
        line.removeprefix(prefix if line.startswith(prefix) else bare)
        for line in lines
        if line.startswith(bare)
    ]


def _chained(lines: list[str], at: int, prefix: str) -> list[str]:
    """Lines that an exception's causes printed right before it."""
    above = _unprefixed(lines[max(0, at - LONGEST) : at], prefix)
    while above and not above[-1]:
        above.pop()
    if not above or not above[-1].startswith(LINKS):
        return []
    starts = [i for i, line in enumerate(above) if line == HEADER]
    first = next((i for i in starts if not _ends_unlinked(above[i:])), None)
    return [*above[first:], ""] if first is not None else []


def _ends_unlinked(lines: list[str]) -> bool:
    """Whether some exception in these lines is followed by something other than a link to the next."""
    for i, line in enumerate(lines[:-1]):
        if line and not line[0].isspace() and line != HEADER and not line.startswith(LINKS):
            following = next((after for after in lines[i + 1 :] if after), "")
            if not following.startswith(LINKS):
                return True
    return False


def _places(body: list[str]) -> tuple[str, str]:
    """Place of the innermost frame, and of the innermost one of the project or a cell; where there is none of
    these, of the innermost one that is not in a library."""
    frames = [match for line in body if (match := _FRAME.match(line))]
    others = [frame for frame in frames if frame["cell"] or not _LIBRARY.match(frame["file"])]
    own = [frame for frame in others if frame["cell"] or not frame["file"].startswith(("/", "~"))]
    return _place(frames), _place(own or others)


def _place(frames: list[re.Match[str]]) -> str:
    return (frames[-1]["cell"] or f"{frames[-1]['file']}:{frames[-1]['line']}") if frames else ""


def _cell(body: list[str]) -> str:
    """The innermost frame that is in a cell, with its line of code, which stands below it."""
    found = [(at, match) for at, line in enumerate(body) if (match := _FRAME.match(line)) and match["cell"]]
    if not found:
        return ""
    at, frame = found[-1]
    code = body[at + 1].strip() if at + 2 < len(body) and not _FRAME.match(body[at + 1]) else ""
    return frame["cell"] + (f": {code}" if code else "")


def _bare_syntax_error(lines: list[str]) -> Traceback | None:
    """A script that does not compile prints no header: file, line of code, caret, error."""
    for at in reversed(range(len(lines))):
        error = _ERROR.fullmatch(lines[at]) if _SYNTAX.match(lines[at]) else None
        if error is not None:
            body = lines[max(0, at - 3) : at + 1]
            return Traceback("\n".join(body), error["kind"], error["text"] or "", *_places(body))
    return None
