"""Messages are plain English: phrasings that readers stumbled over do not come back, and counts agree."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.messages import Message, messages

BANNED = (
    "nobody to ask",
    "then again$",
    "doubles nothing",
    "is no answer",
    "hours are over",
    "of ours is dead",
    r"leaves \(",
    r"\(person\)",
    "asked to stop: \\{reason",
    "is meant; ",
    "lifts (it|that)",
    "resume (goes on|\\{[^}]*\\} goes on)",
    "command again goes on",
    "the same again",
    "free (disk )?space or rights",
    r"--(to|port) another$",
    "no longer, (and|but)",
    "dearer",
    "had to go",
    r"(?<!there )\bis no (?!longer)",
    r"(?<!there )\bare no (?!longer)",
    r"GPU\(s\)",
    ", and must be",
    "meant as it is",
    r"'s' (\*|if)",
    r"\((pause|cap|\{[^}]*\.stop\})\)",
    r"stopped: \{[^}]*stop\}",
    "no file of ours",
    "never rests?",
    r"(after|unused) so long \(",
    "nothing was left for it",
    "say the same thing",
    "carries no",
    "cannot be had",
    "not taken, or no longer",
    "again (queues|sends)",
    "a cap was reached",
)
GONE = (
    "there is nobody to ask",
    "fix it, then again",
    "asked to stop: person",
    "leaves (person)",
    "killed 1 times",
    "again doubles nothing",
    "-y is no answer",
    "hours are over",
    "holds when everything of ours is dead",
)
OWN, ROOT = Path(__file__).resolve(), Path(__file__).resolve().parents[2]
TEXTS = {".py", ".md", ".yaml", ".sh", ".svg", ".js", ".txt"}
NOUNS = "run|time|file|point|model|result|thing|kill|line|image|chance|panel|checkpoint|resource"
BARE_COUNT = re.compile(rf"(?:^|[^\w{{}}] ?|\w+ )(?<!of )(?<!all )(?<!these )\{{[^{{}}]*\}} (?:{NOUNS})s\b")
PLURAL = {  # more than one of them by the code around it, or a verb
    "backends/gce/entrance.py": "of fleet {owner.fleet} runs",
    "backends/gce/images/building.py": "} runs",
    "cli/begin/demo.py": "All {len(found)} runs",
    "cli/begin/demo_cloud.py": "All {len(done)} runs",
    "cli/begin/import_.py": "files to import",
    "cli/run/simulate.py": "runs are left",
    "cli/look/show.py": "({job.count} runs)",
    "fleet/edit.py": "runs are too many",
    "fleet/snapshot/size_limit.py": "the project has",
    "records/run/resolve.py": "{len(found)} runs",
    "spec/files/sweepfile.py": "runs it once",
    "spec/formats/startup.py": "runs no program",
    "spec/space/parsing.py": "are allowed in one sweep",
    "worker/claim/search_client.py": "runs are done and none",
    "records/sweep/failures.py": "the same error {limit} times",
}


@pytest.fixture(scope="module")
def texts() -> list[Message]:
    return list(messages())


def test_messages_are_collected_from_all_kinds_of_places(texts: list[Message]) -> None:
    kinds = {one.kind for one in texts}
    assert {"hint", "help", "echo", "UsageError", "SpecError", "ask"} <= kinds
    assert len(texts) > 3000
    assert any(one.text.startswith("Save and end runs") for one in texts), "a verb's docstring is its help"


@pytest.mark.parametrize("phrase", BANNED)
def test_phrase_does_not_come_back(phrase: str, texts: list[Message]) -> None:
    found = [f"{one.file}:{one.line}: {one.text}" for one in texts if re.search(phrase, one.text)]
    assert not found


def test_hint_is_a_sentence_of_its_own(texts: list[Message]) -> None:
    found = [f"{one.file}:{one.line}: {one.text}" for one in texts if re.match("like [^:]", one.text)]
    assert not found, "a hint shows `for example X`, or says what to do"


@pytest.mark.parametrize("place", ["src", "docs", "tests", "README.md", "examples"])
def test_words_that_readers_stumbled_over_are_gone_everywhere(place: str) -> None:
    top = ROOT / place
    files = [top] if top.is_file() else [path for path in top.rglob("*") if path.suffix in TEXTS]
    told = ((path, " ".join(path.read_text(encoding="utf-8").split())) for path in files if path != OWN)
    assert not [f"{path}: {words}" for path, text in told for words in GONE if words in text]


def test_counts_are_made_by_the_one_helper(texts: list[Message]) -> None:
    found = [one for one in texts if BARE_COUNT.search(one.text)]
    wrong = [one for one in found if PLURAL.get(one.file, "\0") not in one.text]
    assert not [f"{one.file}:{one.line}: {one.text}" for one in wrong], "hostler.spec.units.counted"


def test_bare_count_is_noticed() -> None:
    assert BARE_COUNT.search("{n} runs: {said}") and BARE_COUNT.search("killed {one.kills} times")
    assert not BARE_COUNT.search("{a} of {len(found)} runs") and not BARE_COUNT.search(
        "{counted(n, 'run')} left"
    )
