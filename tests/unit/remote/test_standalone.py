"""Programs that travel as one text: what they use of hostler comes along, and nothing else does."""

from __future__ import annotations

import ast
import gc
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import hostler
from hostler.remote.standalone import standalone

PROGRAMS = (
    "hostler.remote.boot",
    "hostler.backends.gce.boot",
    "hostler.backends.gce.images.builder",
    "hostler.backends.kubernetes.boot",
)
FUTURE = "from __future__ import annotations\n"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(hostler, "__file__", str(tmp_path / "__init__.py"))
    standalone.cache_clear()
    return tmp_path


@pytest.mark.parametrize("program", PROGRAMS)
def test_program_needs_only_an_old_python(program: str) -> None:
    text = standalone(program)
    nodes = list(ast.walk(ast.parse(text, feature_version=(3, 7))))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in names} <= sys.stdlib_module_names
    assert text.isascii() and text.endswith("\n")
    assert "$(" not in text  # Kubernetes would put a variable there
    assert "END-OF-HOSTLER" not in text  # the end of a VM's script


def test_definitions_stand_before_their_users(package: Path) -> None:
    (package / "low.py").write_text(
        FUTURE + "import os\nSEP = os.sep\n\n\nclass Low:\n    sep = SEP\n\n\ndef unused(): return nowhere\n"
    )
    (package / "middle.py").write_text(
        FUTURE + "from hostler.low import Low\n\n\nclass Middle(Low):\n    pass\n"
    )
    (package / "top.py").write_text(
        f'"""Doc."""\n\n{FUTURE}\nimport sys\n\nfrom hostler.middle import (\n    Middle,\n)\n\n'
        "sys.stdout.write(Middle.sep)\n"
    )
    text = standalone("hostler.top")
    assert text.startswith('"""Doc."""') and "unused" not in text
    assert subprocess.check_output([sys.executable, "-IS", "-c", text]) == b"/"


@pytest.mark.parametrize(
    ("top", "why"),
    [
        ("from hostler.low import low\n\n\ndef helper(): pass\n", "helper means something else"),
        ("from hostler.low import low\nfrom hostler.other import helper\n", "helper means something else"),
        ("def main():\n    from hostler.low import low\n", "inside of a function"),
        ("from hostler.low import inner\n", "inside of a function"),
        ("from hostler import low\n", "is a package"),
        ("from hostler.low import none\n", "does not define none"),
    ],
)
def test_program_that_cannot_stand_alone_is_refused(package: Path, top: str, why: str) -> None:
    (package / "low.py").write_text(
        "def helper(): return 1\n\n\ndef low(): return helper()\n\n\n"
        "def inner():\n    from hostler.other import helper\n"
    )
    (package / "other.py").write_text("def helper(): return 2\n")
    (package / "top.py").write_text(FUTURE + top)
    with pytest.raises(ValueError, match=why):
        standalone("hostler.top")


def test_several_hosts_at_once_get_the_same_program() -> None:
    """Whatever Python calls while a thread parses: here at nearly every object that it makes."""
    threshold, between = gc.get_threshold(), sys.getswitchinterval()
    gc.callbacks.append(lambda phase, info: time.sleep(0))
    gc.set_threshold(50)
    sys.setswitchinterval(1e-6)

    def program(_: int) -> str:
        standalone.cache_clear()
        return standalone("hostler.remote.boot")

    try:
        with ThreadPoolExecutor(4) as pool:
            assert len(set(pool.map(program, range(20)))) == 1
    finally:
        gc.callbacks.pop()
        gc.set_threshold(*threshold)
        sys.setswitchinterval(between)
