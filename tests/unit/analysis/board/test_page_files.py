"""The page's files in one answer: modules joined, and a policy that names just these scripts and styles."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.responses import Response

from hostler.analysis import board
from hostler.analysis.board import pagefiles
from hostler.analysis.board.pagefiles import PageFiles

PAGE = Path(board.__file__).parent / "page"
SOURCES = {str(path.relative_to(PAGE)): path.read_text() for path in PAGE.rglob("*.js")}
MODULES = set(SOURCES) - {"early.js"}  # which is no module


def answer(page: PageFiles, name: str) -> Response:
    request = Request({"type": "http", "path_params": {"name": name}})
    with ThreadPoolExecutor(1) as pool:  # a browser that another test drives has a loop in this thread
        return pool.submit(asyncio.run, page.one(request) if name else page.index(request)).result()


def names_in(script: str) -> set[str]:
    return set(re.findall(r"^'([\w/]+\.js)': \(", script, re.MULTILINE))


def test_module_comes_after_all_that_it_imports() -> None:
    sources = {
        "main.js": 'import { a } from "./a.js";\na();\n',
        "a.js": 'import { b as c } from "./deep/b.js";\nexport const a = () => c;\n',
        "deep/b.js": "export function b() {}\n",
    }
    first, later = pagefiles.joined(sources, "main.js")
    assert pagefiles.in_order(sources, "main.js") == ["deep/b.js", "a.js", "main.js"]
    assert "const { b: c } = from('deep/b.js');" in first
    assert "function b() {}\nreturn { b };" in first
    assert first.endswith("from('main.js');\n")
    assert names_in(later) == set()


def test_module_loaded_later_is_in_the_second_script() -> None:
    sources = {"main.js": 'await import("./far.js");\n', "far.js": "export class Far {}\n"}
    first, later = pagefiles.joined(sources, "main.js")
    assert "await load('far.js');" in first and "async (from, load)" in first
    assert names_in(first) == {"main.js"} and names_in(later) == {"far.js"}


def test_modules_that_import_each_other_are_refused() -> None:
    sources = {"a.js": 'import { b } from "./b.js";\n', "b.js": 'import { a } from "./a.js";\n'}
    with pytest.raises(ValueError, match=r"each other: a\.js, b\.js, a\.js"):
        pagefiles.joined(sources, "a.js")


@pytest.mark.parametrize(
    "line",
    ['import all from "./a.js";', 'export { a } from "./a.js";', "export default 1;", "export let n = 1;"],
)
def test_an_import_or_export_in_another_form_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="not the form of the others"):
        pagefiles.joined({"main.js": f"{line}\n"}, "main.js")


@pytest.mark.parametrize("mark", ["</script>", "<!--"])
def test_a_mark_that_would_end_a_script_is_refused(mark: str) -> None:
    with pytest.raises(ValueError, match="end or hide a script"):
        pagefiles.joined({"main.js": f'say("{mark}");\n'}, "main.js")


def test_every_module_of_the_page_is_in_one_script() -> None:
    first, later = map(names_in, pagefiles.joined(SOURCES, "main.js"))
    assert first | later == MODULES
    assert not first & later
    assert {"main.js", "grid.js"} <= first and {"curves.js", "plots/svg.js"} <= later


def test_index_holds_first_view_and_policy_of_its_sums() -> None:
    found = answer(PageFiles(lambda: None), "")
    page, said = bytes(found.body).decode(), found.headers["content-security-policy"]
    scripts = re.findall(r"<script[^>]*>(.*?)</script>", page, re.DOTALL)
    [style] = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    assert len(scripts) == 2 and "unsafe" not in said
    for kind, texts in (("script", scripts), ("style", [style])):
        sums = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts]
        assert re.search(
            rf"{kind}-src 'self' {' '.join(f'.sha256-{re.escape(one)}.' for one in sums)};", said
        )
    assert not re.search(r'(src|href)="/static/', page)  # nothing that a browser must ask for first


def test_files_stay_under_their_own_addresses_unchanged() -> None:
    heard: list[int] = []
    page = PageFiles(lambda: heard.append(1))
    assert bytes(answer(page, "words.js").body).decode() == SOURCES["words.js"]
    assert bytes(answer(page, "later.js").body).startswith(b"export const makers")
    assert answer(page, "none.js").status_code == 404
    assert len(heard) == 3
