"""Addresses of a hub's files: `hf://OWNER/NAME/FILE`, `hf://datasets/OWNER/NAME@REVISION/FOLDER/`, or a whole
repository. Standard library only: machines read them, too.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import quote, unquote

SCHEME = "hf://"
HINT = "hf://OWNER/NAME, hf://OWNER/NAME/FILE or hf://datasets/OWNER/NAME/FOLDER/"
_NAME = r"[\w-][\w.-]*"
# A revision ends at the next `/`, but for the hub's own references; in others `/` is written %2F.
_REVISION = r"refs/(?:pr/\d+|convert/[\w-]+)(?=/|$)|[\w.%-]+"
_FORM = re.compile(
    rf"hf://(?:(?P<kind>datasets|models)/)?(?P<repo>{_NAME}/{_NAME})(?:@(?P<revision>{_REVISION}))?(?:/(?P<path>.*))?",
    re.ASCII,
)
_OLD = re.compile(
    rf"hf://(?P<kind>datasets)/(?P<repo>{_NAME})(?:@(?P<revision>{_REVISION})(?:/(?P<path>.*))?|/?)", re.ASCII
)
_KINDS = ("datasets", "models", "spaces")  # no owner is called so


class HubPath(NamedTuple):
    kind: str  # models, datasets
    repo: str
    revision: str
    path: str  # '' is all; a folder ends in /

    def at(self, endpoint: str, name: str) -> str:
        folder = "datasets/" if self.kind == "datasets" else ""
        return f"{endpoint}/{folder}{self.repo}/resolve/{quote(self.revision, safe='')}/{quote(name)}"


def parse(url: str) -> HubPath:
    """What an address means; ValueError if it is none. A dataset of before there were owners has one name."""
    match = _OLD.fullmatch(url) or _FORM.fullmatch(url)
    if not match:
        raise ValueError(f"{url} is not an address of the hub")
    repo, path, revision = match["repo"], match["path"] or "", unquote(match["revision"] or "main")
    odd = ".." in path.split("/") or ".." in repo or ".." in revision or not revision.isprintable()
    if odd or revision == "refs" or "%" in revision or repo.partition("/")[0] in _KINDS:
        raise ValueError(f"{url} is not an address of the hub")
    return HubPath(match["kind"] or "models", repo, revision, path)
