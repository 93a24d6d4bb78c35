"""Brings into the site what lies outside docs/: README, architecture, changes, the READMEs of examples.

A link between files of the repository leads somewhere on a code host and in the site: it is written for the
first, and turned here into one for the second. Pages of `nav` that are not there are left out. `llms.txt`
lists all pages for assistants, each with its first sentence.
"""

from __future__ import annotations

import fnmatch
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from tables import messages, packages  # the folder of a hook is where it may import from

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
ROOT_PAGES = {
    "index.md": "README.md",
    "architecture.md": "ARCHITECTURE.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
}
FENCE = re.compile(r"(^```.*?^```)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s:]+)((?:#[^)\s]*)?)\)")
_first_lines: dict[str, str] = {}  # address of a page → its first sentence
MADE = {"<!-- messages -->": messages, "<!-- packages -->": packages}


def pages() -> dict[str, Path]:
    """Pages that lie outside docs/: address in the site → file."""
    found = {uri: ROOT / name for uri, name in ROOT_PAGES.items()}
    readmes = sorted(ROOT.glob("examples/*/README.md"))
    return found | {f"examples/{path.parent.name}.md": path for path in readmes}


def on_config(config: Any) -> Any:
    parts = [part for whole in config.nav for part in whole.items()]
    config.nav = [{title: _shown(names)} for title, names in parts]
    return config


def on_files(files: Files, config: Any) -> Files:
    for uri, path in pages().items():
        files.append(File.generated(config, uri, content=path.read_text()))
    for path in _linked():
        files.append(File.generated(config, _uri_of(path), abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    uri = page.file.src_uri
    source = pages().get(uri, DOCS / uri)
    for mark, made in MADE.items():
        if mark in markdown:
            markdown = markdown.replace(mark, made())
    pieces = FENCE.split(markdown)
    return "".join(
        piece if n % 2 else LINK.sub(lambda found: _link(found, source, uri), piece)
        for n, piece in enumerate(pieces)
    )


def on_page_content(html: str, page: Any, config: Any, files: Files) -> None:
    _first_lines[page.file.src_uri] = _sentence(page.markdown or "")


def on_env(env: Any, config: Any, files: Files) -> None:
    """Write llms.txt (https://llmstxt.org): a heading for each part of the site, a line for each page."""
    by_uri = {file.src_uri: file.page for file in files.documentation_pages() if file.page}
    lines = [f"# {config.site_name}", "", f"> {config.site_description}"]
    for title, names in (part for whole in config.nav for part in whole.items()):
        lines += ["", f"## {title}", ""]
        lines += [
            f"- [{page.title}]({page.url}): {_first_lines[uri]}" for uri in names if (page := by_uri.get(uri))
        ]
    place = Path(config.site_dir) / "llms.txt"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("\n".join(lines) + "\n")


def _sentence(markdown: str) -> str:
    """The first sentence of a page that is neither a heading, a table, code nor a picture; as plain text."""
    pieces = FENCE.split(markdown)[::2]
    paragraphs = [one.strip() for piece in pieces for one in re.split(r"\n\s*\n", piece)]
    text = next((one for one in paragraphs if one and one[0] not in "#|<!>-*"), "")
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", " ".join(text.split())).replace("**", "")
    return re.split(r"(?<=[.:])\s", text, maxsplit=1)[0].rstrip(":")


def _shown(names: list[str]) -> list[str]:
    """Those that are there; `examples/*` is all of them."""
    known = pages()
    all_names = [one for name in names for one in (fnmatch.filter(known, name) if "*" in name else [name])]
    return [name for name in all_names if name in known or (DOCS / name).is_file()]


def _link(found: re.Match[str], source: Path, uri: str) -> str:
    target = (source.parent / found[1]).resolve()
    if not target.exists():
        return found[0]  # the build says so
    return f"]({posixpath.relpath(_uri_of(target), posixpath.dirname(uri) or '.')}{found[2]})"


def _uri_of(target: Path) -> str:
    """Where in the site a file of the repository is."""
    known = {path: uri for uri, path in pages().items()}
    if target in known:
        return known[target]
    if target.is_relative_to(DOCS):
        return target.relative_to(DOCS).as_posix()
    return f"files/{target.relative_to(ROOT).as_posix()}"


def _linked() -> list[Path]:
    """Files outside docs/ that some page leads to, and that are no pages themselves."""
    sources = [*DOCS.glob("*.md"), *pages().values()]
    found = set()
    for source in sources:
        for piece in FENCE.split(source.read_text())[::2]:
            found |= {(source.parent / match[1]).resolve() for match in LINK.finditer(piece)}
    outside = {path for path in found if path.is_file() and not path.is_relative_to(DOCS)}
    return sorted(outside - set(pages().values()))
