"""Places of `hostler push`, without a hub."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostler.cli.hubs.card import without_home
from hostler.cli.hubs.targets import _Bucket, target
from hostler.cli.keep.push import _replaced
from hostler.errors import MachineError, StoreError, UsageError
from hostler.store.memory import shared_memory


def test_store_gets_every_file_and_names_those_it_replaces(tmp_path: Path) -> None:
    (tmp_path / "made" / "curves").mkdir(parents=True)
    (tmp_path / "made" / "README.md").write_text("card")
    (tmp_path / "made" / "curves" / "acc.svg").write_text("<svg/>")
    names = ["README.md", "curves/acc.svg"]
    bucket = _Bucket(str(tmp_path / "bucket"), "a bucket")
    assert bucket.there(names) == []
    bucket.push(tmp_path / "made", names, "")
    assert bucket.there(names) == names
    assert (tmp_path / "bucket" / "curves" / "acc.svg").read_text() == "<svg/>"


def test_folder_whose_link_leads_out_is_refused(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "curves").symlink_to("/tmp")
    with pytest.raises(UsageError, match="leads out"):
        target(str(tmp_path / "here"), public=False).there(["curves/acc.svg"])


@pytest.mark.parametrize("word", ["hf://model", "hf://a/b/c", "hf://../x", "hf://a/b..c", "hf://"])
def test_word_that_names_no_model_of_the_hub_is_refused(word: str) -> None:
    with pytest.raises(UsageError, match="not a model of the hub"):
        target(word, public=False)


@pytest.mark.parametrize("word", ["", "  "])
def test_target_that_is_not_named_is_refused(word: str) -> None:
    with pytest.raises(UsageError, match="no target is named"):
        target(word, public=False)


@pytest.mark.parametrize("name", ["hostler.yaml", "hostler.yml", "hostler.json", ".hostler"])
@pytest.mark.parametrize("form", ["{}", "{}/", "file://{}"])
def test_folder_of_a_project_is_refused(tmp_path: Path, name: str, form: str) -> None:
    place = target(form.format(tmp_path), public=False)
    place.check()
    (tmp_path / name).mkdir()
    with pytest.raises(UsageError, match=f"is the folder of a project: it holds {name}"):
        place.check()


def test_folder_in_a_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="in a store"):
        target(str(tmp_path / ".hostler" / "models"), public=False).check()


def test_files_that_would_be_replaced_are_named() -> None:
    assert _replaced([]) == ""
    assert _replaced(["a"]) == " It replaces a."
    assert _replaced(["a", "b"]) == " It replaces a and b."
    assert _replaced([str(n) for n in range(10)]).endswith(" 6, 7 and 2 more.")


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("train.py --data /data/me/x --out=/data/me", "train.py --data ~/x --out=~"),
        ("-I/data/me/include:/data/me/lib", "-I~/include:~/lib"),
        ("file:///home/other/set", "file://~/set"),
        ("/Users/an.other/x", "~/x"),
        ("/data/mean /data/me.old /mnt/data/me", "/data/mean /data/me.old /mnt/data/me"),
        ({"a": ["/data/me/x", 1, None]}, {"a": ["~/x", 1, None]}),
    ],
)
def test_home_folder_is_not_on_the_card(given: object, shown: object) -> None:
    assert without_home(given, ["/data/me/", "/"]) == shown


def test_bucket_is_asked_and_not_written_before_anything_is_fetched() -> None:
    store = shared_memory("push-check")
    seen: list[str] = []

    def refuse(operation: str, key: str) -> None:
        seen.append(operation)
        raise StoreError("no right to list")

    place = target("memory://push-check", public=False)
    place.check()
    store.before = refuse
    with pytest.raises(StoreError, match="no right to list"):
        place.check()
    assert seen == ["list"]


def test_longest_name_of_a_file_arrives_and_nothing_beside_it(tmp_path: Path) -> None:
    (tmp_path / "made").mkdir()
    for name in ("x" * 255, "taken"):
        (tmp_path / "made" / name).write_text("weights")
    (tmp_path / "there" / "taken").mkdir(parents=True)
    place = target(str(tmp_path / "there"), public=False)
    with pytest.raises(MachineError, match="taken"):
        place.push(tmp_path / "made", ["x" * 255, "taken"], "")
    assert sorted(path.name for path in (tmp_path / "there").iterdir()) == ["taken", "x" * 255]
