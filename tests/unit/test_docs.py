"""What the documents say, held against the code."""

from __future__ import annotations

import ast
import inspect
import re
import shlex
from dataclasses import fields
from importlib import metadata
from pathlib import Path

import click
import pytest

import hostler
from hostler import env, settings
from hostler.analysis.curves import COLUMNS
from hostler.analysis.frame import FACTS
from hostler.backends import project_file
from hostler.backends.registry import BACKENDS
from hostler.cli.main import ALIASES, VERBS, declared
from hostler.records import layout
from hostler.records.run import log
from hostler.sdk.run import Run
from hostler.spec.argv import PLACES, STYLES
from hostler.spec.files import parse, sweepfile
from hostler.train import configfile
from hostler.train.config import Config
from hostler.worker.run.kinds import POLICY, TRIES

ROOT = Path(__file__).parents[2]
DOCS = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*/*.md")]
SAMPLES = {
    "fleet": "burst",
    "sha256": "0f" * 32,
    "name": "SWEEP",
    "run": "RUN",
    "run_id": "RUN",
    "session": "SESSION",
    "sweep": "SWEEP",
}


def text(name: str) -> str:
    return (ROOT / name).read_text()


def section(name: str, title: str) -> str:
    """A document from a heading to the next one."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", text(name), re.MULTILINE | re.DOTALL)
    assert found, f"{name} has no section {title!r}"
    return found[1]


def table(source: str) -> list[list[str]]:
    """Cells of every table row, without heads and rules."""
    lines = [line for line in source.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    rules = {n for n, line in enumerate(lines) if re.fullmatch(r"[|\s-]+", line)}
    return [row for n, row in enumerate(rows) if n not in rules and n + 1 not in rules]


def quoted(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def anchors(path: Path) -> set[str]:
    heads = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}


def prose(path: Path) -> str:
    return re.sub(r"^```.*?^```", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("path", DOCS, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", prose(path)):
        if target.startswith("https://"):
            continue
        file, _, anchor = target.partition("#")
        there = path if not file else path.parent / file
        assert there.exists(), target
        assert not anchor or anchor in anchors(there), target


@pytest.mark.parametrize("path", DOCS, ids=lambda path: path.name)
def test_commands_in_code_blocks_exist(path: Path) -> None:
    targets = re.findall(r"^([a-z]+):", text("Makefile"), re.MULTILINE)
    for block in re.findall(r"^```\w*\n(.*?)^```", path.read_text(), re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            if line.startswith("hostler "):
                verb = shlex.split(line, comments=True)[1]
                assert verb in VERBS or verb in ALIASES, line
            if line.startswith("make "):
                assert line.split()[1] in targets, line


def test_the_table_of_verbs_is_that_of_the_program() -> None:
    rows = table(text("docs/cli.md").partition("## ")[0])
    assert {quoted(verb)[0]: what for verb, what in rows} == VERBS


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_is_there(verb: str) -> None:
    assert callable(declared(verb).callback)


def test_the_table_of_failures_is_that_of_the_worker() -> None:
    rows = [row for row in table(text("docs/failures.md")) if len(row) == 3]
    assert {quoted(kind)[0]: (quoted(retry)[0], advice) for kind, retry, advice in rows} == {
        kind: (policy.retry, policy.advice) for kind, policy in POLICY.items()
    }


def test_the_table_of_certain_errors_is_that_of_the_worker() -> None:
    rows = {row[1].split(",")[0]: quoted(row[0]) for row in table(text("docs/failures.md")) if len(row) == 2}
    for word, tries in (("once", 1), ("twice", 2)):
        assert rows[word] == [error for error, known in TRIES.items() if known == tries]


@pytest.mark.parametrize(
    ("title", "model"),
    [
        ("The project", parse._ProjectTable),
        ("python", parse._Python),
        ("resources", parse._ResourcesTable),
        ("limits", parse._LimitsTable),
        ("checkpoint", parse._CheckpointTable),
        ("notify", parse._NotifyTable),
        ("data", parse._DataTable),
    ],
)
def test_every_key_of_the_file_is_documented_and_no_other(title: str, model: type[parse._Table]) -> None:
    keys = [key for row in table(section("docs/hostler-yaml.md", title)) for key in quoted(row[0])]
    assert sorted(keys) == sorted(model.model_fields)


def test_every_key_of_a_sweep_file_is_documented_exactly() -> None:
    keys = [key for row in table(section("docs/sweeps.md", "The file")) for key in quoted(row[0])]
    own = set(sweepfile._SweepTable.model_fields) - set(parse._ProjectTable.model_fields)
    assert set(keys) == own | {"name", "metric"}


def test_every_option_of_sweep_is_documented_and_no_other() -> None:
    said = [
        word.split()[0]
        for row in table(section("docs/sweeps.md", "hostler sweep"))
        for word in quoted(row[0])
    ]
    options = [word for one in declared("sweep").params if isinstance(one, click.Option) for word in one.opts]
    shared = {"--yes", "--store", "--json"}
    assert set(said) == set(options) - shared


def test_every_key_of_every_fleet_is_documented_and_no_other() -> None:
    rows = {row[0].strip("`"): row[1] for row in table(section("docs/hostler-yaml.md", "fleets"))}
    common = set(parse.FleetKeys.model_fields) | {"backend"}
    assert _names(rows.pop("all")) == common
    for name, model in project_file.kinds().items():
        assert _names(rows.pop(name)) == set(model.model_fields) - common, name
    assert not rows


def _names(cell: str) -> set[str]:
    return set(quoted(re.sub(r"\([^)]*\)", "", cell)))


def test_defaults_of_the_file_are_those_of_the_data() -> None:
    said = {quoted(row[0])[0]: row[2] for row in table(section("docs/hostler-yaml.md", "The project"))}
    for name in ("style", "goal"):
        assert said[name] == f"`{getattr(parse.job.Job, name)}`"
    for name in ("retries", "priority"):
        assert said[name] == str(getattr(parse.job.Job, name))


def test_readme_lists_every_backend_and_how_it_is_tested() -> None:
    rows = table(section("README.md", "Where it runs"))
    assert [quoted(row[0])[0] for row in rows] == list(BACKENDS) and all(row[1] for row in rows)


def made_keys() -> dict[str, str]:
    """function → a key that it makes, of every function of layout.py that makes one."""
    made = {}
    for name, function in inspect.getmembers(layout, inspect.isfunction):
        parameters = inspect.signature(function).parameters
        if (
            function.__module__ != layout.__name__
            or name in ("_fragment", "number", "numbers")
            or "key" in parameters
        ):
            continue
        if function.__annotations__["return"] != "str":
            continue
        key = function(**{name: SAMPLES.get(name, 7) for name in parameters})
        if isinstance(key, str) and not key.endswith("/"):
            made[name] = key
    return made


def test_every_key_of_the_store_is_documented_and_no_other() -> None:
    said = [key for row in table(section("docs/storage.md", "Keys")) for key in quoted(row[0])]
    patterns = {key: re.sub(r"<\w+>", "[^/]+", re.escape(key).replace("…", ".+")) for key in said}
    found = {f: [k for k, p in patterns.items() if re.fullmatch(p, key)] for f, key in made_keys().items()}
    assert [function for function, keys in found.items() if not keys] == []
    assert set(said) - {key for keys in found.values() for key in keys} == set()


@pytest.mark.parametrize(
    ("name", "title"), [("docs/storage.md", "The log of a run"), ("docs/protocol.md", "Log entries")]
)
def test_the_kinds_of_log_entries_are_documented(name: str, title: str) -> None:
    kinds = {log.CLAIM, log.RELEASE, log.STOP_REQUEST, log.END, log.REOPEN}
    assert {quoted(row[0])[0] for row in table(section(name, title))} == kinds


def test_variables_places_and_styles_a_script_gets_are_documented() -> None:
    own = (
        "CACHE",
        "WARM",
        "TOGETHER",
        "DEVICES",
        "HOST",
        "PORTS",
        "ADDRESS",
        "POD",
        "JOB_ENDS",
        "PRICES",
        "CLOUD_ENDPOINT",
    )  # read by hostler itself
    given = {value for name, value in vars(env).items() if name.isupper() and name not in own}
    variables = {quoted(row[0])[0] for row in table(section("docs/scripts.md", "Variables"))}
    assert variables - {"CUDA_VISIBLE_DEVICES"} == given
    words = {quoted(row[0])[0] for row in table(section("docs/scripts.md", "Parameters"))}
    assert words == {*STYLES, *(f"{{{place}}}" for place in PLACES)}


def test_the_settings_and_their_defaults_are_documented() -> None:
    said = {quoted(row[0])[0]: row[1:4] for row in table(section("docs/settings.md", "Times and sizes"))}
    assert said == {
        one.name: [
            f"{one.default:g}",
            _shown(settings.ONE_MACHINE, one.name),
            _shown(settings.NETWORK_FOLDER, one.name),
        ]
        for kind in (settings.Timing, settings.Sizes)
        for one in fields(kind)
    }


def _shown(values: dict[str, float], name: str) -> str:
    return f"{values[name]:g}" if name in values else ""


SOURCE = ROOT / "src" / "hostler"
NAMED = r"`((?:\w+/)+\w+\.py)(?:: ([\w.]+))?`"


@pytest.mark.parametrize(("name", "least"), [("ARCHITECTURE.md", 100), ("docs/internals.md", 200)])
def test_files_and_functions_that_a_page_names_are_there(name: str, least: int) -> None:
    named = {(file, of) for file, of in re.findall(NAMED, text(name)) if not file.startswith("tests/")}
    assert len(named) >= least
    for file, function in named:
        assert (SOURCE / file).is_file(), file
        last = function.rpartition(".")[2]
        assert not last or re.search(rf"(def|class) {last}\b", (SOURCE / file).read_text()), (file, function)


NOW = [path for path in DOCS if path.name != "CHANGELOG.md"]  # which tells of files that were


@pytest.mark.parametrize("path", NOW, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_python_files_that_a_page_names_are_there(path: Path) -> None:
    named = re.findall(r"`((?:\w+/)+[\w*]+\.py)`", path.read_text())
    missing = [name for name in named if not any(list(root.glob(name)) for root in (ROOT, SOURCE))]
    assert missing == []


def test_pure_decisions_name_a_function_each() -> None:
    rows = table(section("docs/internals.md", "Pure decisions"))
    assert len(rows) > 60
    assert [row[0] for row in rows if not quoted(row[1])] == []


def test_architecture_draws_every_folder() -> None:
    folders = {path.name for path in SOURCE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert set(re.findall(r"^  (\w+)/ ", section("ARCHITECTURE.md", "Folders"), re.MULTILINE)) == folders


def test_architecture_is_short_and_has_seven_walks() -> None:
    assert len(text("ARCHITECTURE.md").splitlines()) <= 250
    walks = re.findall(r"^## Walk (\d): ", text("ARCHITECTURE.md"), re.MULTILINE)
    assert walks == list("1234567")
    first = text("ARCHITECTURE.md").partition("## Walk 1")[2].partition("\n## ")[0]
    assert len({file for file, _ in re.findall(NAMED, first)}) <= 25


def packages_of_hostler() -> list[Path]:
    return sorted(path.parent for path in SOURCE.rglob("__init__.py"))


@pytest.mark.parametrize("folder", packages_of_hostler(), ids=lambda path: path.name)
def test_docstring_of_a_package_names_each_of_its_files(folder: Path) -> None:
    told = ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""
    files = {path.name for path in folder.glob("*.py") if not path.name.startswith("__")}
    rooms = {f"{path.parent.name}/" for path in folder.glob("*/__init__.py")}
    assert set(re.findall(r"^([\w]+(?:\.py|/))(?= )", told, re.MULTILINE)) == files | rooms


def test_everything_a_run_offers_is_documented() -> None:
    page = text("docs/library.md")
    offered = [name for name in vars(Run) if not name.startswith("_")]
    inner = {"close", "closed", "disown", "restore", "rank", "ranks", "sweep", "attempt", "id", "resumed"}
    for name in offered:
        assert name in inner or f"run.{name}" in page, name
    given = [name for row in table(section("docs/library.md", "Starting")) for name in quoted(row[0])]
    assert set(inspect.signature(hostler.start).parameters) <= set(given)


def test_the_columns_of_frames_are_documented() -> None:
    rows = {quoted(row[0])[0]: quoted(row[1]) for row in table(section("docs/library.md", "Reading back"))}
    assert rows["curves"] == COLUMNS
    assert rows["frame"][: len(FACTS)] == FACTS


def test_the_trainers_keys_and_defaults_are_those_of_the_code() -> None:
    lines = configfile.dump(Config()).splitlines()
    known = {name: default for name, _, default in (line.partition(": ") for line in lines)}
    told = {
        quoted(key)[0]: quoted(default)[0]
        for key, default, _ in table(section("docs/trainer.md", "All keys"))
    }
    assert told == known


def packages() -> dict[str, set[str]]:
    """extra → packages it names itself, '' for those that are always installed, by pyproject.toml."""
    found: dict[str, set[str]] = {}
    own = text("pyproject.toml").partition("\ndependencies = [")[2].partition("[project.scripts]")[0]
    whole = "x = [" + own.replace("[project.optional-dependencies]", "")
    for name, inner in re.findall(r"^([\w-]+) = \[((?:\[[^]]*\]|[^]])*)\]", whole, re.MULTILINE):
        named = re.findall(r'"([\w-]+)[^"]*"', re.sub(r"#.*", "", inner))
        found["" if name == "x" else name] = {one for one in named if one != "hostler"}
    return found


FOR_DEVELOPERS = ("test", "frameworks", "gangs-test", "docs", "lint")


def test_the_table_of_extras_is_that_of_the_package() -> None:
    rows = {quoted(row[0])[0]: set(quoted(row[2])) for row in table(section("docs/install.md", "Extras"))}
    told = {extra: named for extra, named in packages().items() if extra and extra not in FOR_DEVELOPERS}
    assert rows == told


def test_every_package_has_the_licence_that_it_declares() -> None:
    rows = {quoted(row[0])[0]: row[1] for row in table(section("docs/install.md", "Licences"))}
    assert rows.keys() == {
        one for extra, named in packages().items() if extra not in FOR_DEVELOPERS for one in named
    }
    seen = 0
    for package, told in rows.items():
        said = licence(package)
        if said:
            seen += 1
            assert told.split("-")[0].split(",")[0] in said or "its own" in told, (package, said)
    assert seen > 10


def licence(package: str) -> str:
    """What an installed package says of its licence, '' if it is not here."""
    try:
        found = metadata.metadata(package)
    except metadata.PackageNotFoundError:
        return ""
    kinds = [one for one in found.get_all("Classifier") or () if one.startswith("License")]
    return " ".join([found.get("License-Expression") or "", (found.get("License") or "")[:80], *kinds])


def test_package_index_page_has_only_links_that_work() -> None:
    assert 'readme = "DESCRIPTION.md"' in text("pyproject.toml")
    assert [one for one in re.findall(r"\]\(([^)]+)\)", text("DESCRIPTION.md")) if "://" not in one] == []
    assert {*packages()} - {*FOR_DEVELOPERS, ""} <= {*re.findall(r"`(\w+)`", text("DESCRIPTION.md"))}


def test_every_claim_of_security_names_a_test_that_exists() -> None:
    claims = re.findall(r"`(test_\w+)` \|$", text("docs/security.md"), re.MULTILINE)
    source = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    known = set(re.findall(r"def (test_\w+)\(", source))
    assert len(claims) > 40
    assert not [name for name in claims if name not in known]
