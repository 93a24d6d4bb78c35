"""Every clause of the Store protocol as tests: subclass StoreContract with a `store` fixture.

    class TestMyStore(StoreContract):
        @pytest.fixture
        def store(self): return MyStore(...)   # empty

Nothing here knows which store it is; what a server is known to lack is said by the subclass.
"""

from __future__ import annotations

import itertools
import json
import random
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hostler import env
from hostler.errors import MissingError, StoreError
from hostler.store import NotFound, Store
from hostler.testing import racer

ORDERED = ["a+b", "a,b", "a-b", "a.b", "a/b", "a/c/d", "a/c-d", "a0", "a=b", "a@b", "aZ", "a_b", "ab/c"]


def keys(store: Store, prefix: str, after: str = "", *, deep: bool = True) -> list[str]:
    return [entry.key for entry in store.list(prefix, after, deep=deep)]


class StoreContract:
    """`processes`: the URL opens the same store in another process. `flat`: keys are plain strings to the
    server; one that keeps a tree lists folder by folder and may show emptied folders for a while."""

    processes = True
    flat = True

    def test_what_was_put_is_got(self, store: Store) -> None:
        data = bytes(range(256)) + "Zürich 東京".encode()
        assert store.put("folder/key", data) is True
        assert store.get("folder/key").data == data

    def test_an_empty_object_is_an_object(self, store: Store) -> None:
        store.put("empty", b"")
        assert store.get("empty").data == b""
        assert store.get("empty", start=0, end=4).data == b""
        assert [(e.key, e.size) for e in store.list("")] == [("empty", 0)]

    def test_ranges_are_slices(self, store: Store) -> None:
        data = b"0123456789"
        store.put("k", data)
        for start, end in [(0, 4), (3, 7), (3, None), (0, 100), (5, 5), (10, None), (20, 30), (9, 10)]:
            assert store.get("k", start=start, end=end).data == data[start:end], (start, end)
        assert store.get("k", start=2, end=3).etag == store.get("k").etag

    def test_what_is_not_there_is_not_found(self, store: Store) -> None:
        for key, start, end in (("no", 0, None), ("no", 1, 2), ("no", 2, 2), ("no/such", 0, None)):
            with pytest.raises(NotFound, match="no"):
                store.get(key, start=start, end=end)
        assert keys(store, "") == keys(store, "no/such/") == keys(store, "no", deep=False) == []

    def test_a_put_replaces_and_changes_the_etag(self, store: Store) -> None:
        etags = []
        for n in range(3):
            store.put("k", b"same size %d" % n)
            etags.append(store.get("k").etag)
            assert [e.etag for e in store.list("k")] == etags[-1:]
        assert len(set(etags)) == 3
        assert store.get("k").data == b"same size 2"

    def test_entries_tell_size_and_time(self, store: Store) -> None:
        store.put("k", b"12345")
        [entry] = store.list("k")
        assert (entry.key, entry.size) == ("k", 5)
        assert entry.etag and entry.modified > 1.5e9

    def test_odd_but_legal_keys_are_kept_apart(self, store: Store) -> None:
        odd = ["A", "a..b", "...", "..a", "-", "x=1,y=2", "me@host+1", "long" * 50, "d/e/e/p/er"]
        for key in odd:
            store.put(key, key.encode())
        assert sorted(keys(store, "")) == sorted(odd)
        assert [store.get(key).data.decode() for key in odd] == odd

    @pytest.mark.parametrize(
        "key", ["", "/a", "a/", "a//b", ".", "..", "a/../b", "./a", "a b", "a\n", "ü", ".tmp-1"]
    )
    def test_what_is_no_key_is_refused(self, store: Store, key: str, tmp_path: Path) -> None:
        for call in (
            store.get,
            store.delete,
            lambda k: store.put(k, b"x"),
            lambda k: store.download(k, tmp_path / "x"),
        ):
            with pytest.raises(StoreError, match="not a key"):
                call(key)

    def test_a_create_is_lost_to_what_is_there(self, store: Store) -> None:
        assert store.put("k", b"mine", if_absent=True) is True
        assert store.put("k", b"yours", if_absent=True) is False
        assert store.get("k").data == b"mine"
        store.delete("k")
        assert store.put("k", b"yours", if_absent=True) is True

    def test_a_create_repeated_with_the_same_bytes_is_still_won(self, store: Store) -> None:
        assert store.put("k", b"mine", if_absent=True) is True
        etag = store.get("k").etag
        assert store.put("k", b"mine", if_absent=True) is True
        assert store.get("k").etag == etag

    def test_of_many_threads_one_creates(self, store: Store) -> None:
        barrier = threading.Barrier(8)

        def contend(name: str) -> list[int]:
            barrier.wait()
            return racer.contend(store, "race", 10, name)

        names = [f"thread{n}" for n in range(8)]
        with ThreadPoolExecutor(8) as pool:
            self._one_winner_each(store, 10, dict(zip(names, pool.map(contend, names), strict=True)))

    def test_of_many_processes_one_creates(self, store: Store) -> None:
        if not self.processes:
            pytest.skip("this store is seen by one process only")
        surroundings = env.inherited() | {"PYTHONPATH": ":".join(sys.path)}
        names = [f"process{n}" for n in range(3)]
        command = [sys.executable, "-m", "hostler.testing.racer", store.url, "race", "30"]
        started = [subprocess.Popen([*command, n], stdout=subprocess.PIPE, env=surroundings) for n in names]
        won = {
            name: json.loads(process.communicate()[0]) for name, process in zip(names, started, strict=True)
        }
        self._one_winner_each(store, 30, won)

    def _one_winner_each(self, store: Store, rounds: int, won: dict[str, list[int]]) -> None:
        for n in range(rounds):
            [winner] = [name for name in won if n in won[name]]
            assert store.get(f"race/{n}").data == racer.body(winner, n)

    def test_a_listing_is_in_the_order_of_whole_keys(self, store: Store) -> None:
        if not self.flat:
            pytest.skip("this server lists folder by folder")
        shuffled = random.Random(1).sample(ORDERED, len(ORDERED))
        for key in shuffled:
            store.put(key, b"x")
        assert keys(store, "") == sorted(ORDERED)
        for after in (*ORDERED, "a/", "a/c", "a/c/", "a/c/e", "0", "b"):
            assert keys(store, "", after) == [k for k in sorted(ORDERED) if k > after], after

    def test_a_prefix_is_a_string_not_a_folder(self, store: Store) -> None:
        every = ["run-1/a", "run-1/b", "run-10/a", "run-2", "run/a", "rust"]
        for key in every:
            store.put(key, b"x")
        for prefix in (
            "",
            "r",
            "ru",
            "run",
            "run-",
            "run-1",
            "run-1/",
            "run-10",
            "run-1/a",
            "run-3",
            "s",
            "+",
            "/",
            "../",
            "run//",
        ):
            assert sorted(keys(store, prefix)) == sorted(k for k in every if k.startswith(prefix)), prefix

    def test_a_shallow_listing_folds_what_is_deeper(self, store: Store) -> None:
        for key in ("s/a/1", "s/a/2/3", "s/a-b", "s/ab/1", "s/b", "t/1"):
            store.put(key, b"x")
        assert keys(store, "s/", deep=False) == ["s/a-b", "s/a/", "s/ab/", "s/b"]
        assert keys(store, "s/", "s/a-b", deep=False) == ["s/a/", "s/ab/", "s/b"]
        assert keys(store, "s/", "s/a/", deep=False) == ["s/ab/", "s/b"]
        assert keys(store, "s/", "s/a/2", deep=False) == ["s/ab/", "s/b"]
        assert keys(store, "s/a", deep=False) == ["s/a-b", "s/a/", "s/ab/"]
        assert keys(store, "", deep=False) == ["s/", "t/"]
        assert keys(store, "s", deep=False) == ["s/"]

    def test_a_folder_whose_keys_are_deleted_is_gone(self, store: Store) -> None:
        if not self.flat:
            pytest.skip("this server keeps emptied folders for a while")
        store.put("s/a/b/1", b"x")
        store.delete("s/a/b/1")
        assert keys(store, "", deep=False) == keys(store, "s/", deep=False) == keys(store, "") == []

    def test_thousands_of_keys_are_listed_in_order_from_anywhere(self, store: Store) -> None:
        names = [f"log/{n:06d}-{n % 7:06d}.json" for n in range(2500)]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda key: store.put(key, b"x"), [*names, "lof/1", "log-1", "loh/1"]))
        assert keys(store, "log/") == names
        assert keys(store, "log/", names[1200]) == names[1201:]
        assert keys(store, "log/0024") == names[2400:2500]
        assert keys(store, "log/", names[-1]) == []
        rows = store.list("log/", names[10])
        assert [row.key for row in itertools.islice(rows, 5)] == names[11:16]

    def test_a_listing_survives_deletes_and_puts_meanwhile(self, store: Store) -> None:
        for n in range(20):
            store.put(f"k/{n:02d}", b"x")
        rows = store.list("k/")
        assert next(rows).key == "k/00"
        store.delete(*(f"k/{n:02d}" for n in range(5, 15)))
        store.put("k/99", b"x")
        rest = [row.key for row in rows]
        assert [k for k in rest if k in {"k/04", "k/15", "k/19"}] == ["k/04", "k/15", "k/19"]
        assert rest == sorted(rest)

    def test_delete_removes_exact_keys(self, store: Store) -> None:
        every = ["run-1/a", "run-1/b", "run-10/a", "run-1.json"]
        for key in every:
            store.put(key, b"x")
        store.delete("run-1/a", "run-1/b", "run-1", "not/there")
        store.delete("run-1/a")
        store.delete()
        assert sorted(keys(store, "")) == ["run-1.json", "run-10/a"]

    def test_a_delete_beside_a_put_in_the_same_folder_loses_nothing(self, store: Store) -> None:
        def come_and_go(who: int) -> None:
            for n in range(20):
                assert store.put(f"deep/er/{who}-{n}", b"x", if_absent=n % 2 == 0)
                store.delete(f"deep/er/{who}-{n}")
            store.put(f"deep/er/{who}", b"x")

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(come_and_go, range(4)))
        assert keys(store, "") == [f"deep/er/{who}" for who in range(4)]

    def test_a_big_file_goes_up_and_comes_down(self, store: Store, tmp_path: Path) -> None:
        path, back = tmp_path / "there", tmp_path / "new" / "folder" / "back"
        data = random.Random(7).randbytes(21_000_001)
        path.write_bytes(data)
        store.upload(path, "big/file")
        store.download("big/file", back)
        assert back.read_bytes() == data
        assert store.get("big/file", start=20_000_000, end=20_000_010).data == data[20_000_000:20_000_010]
        assert [p.name for p in back.parent.iterdir()] == ["back"]

    def test_a_small_and_an_empty_file_go_up_and_replace(self, store: Store, tmp_path: Path) -> None:
        source = tmp_path / "source"
        for data in (b"", b"hello", b""):
            source.write_bytes(data)
            store.upload(source, "file")
            store.download("file", tmp_path / "back")
            assert store.get("file").data == (tmp_path / "back").read_bytes() == data

    def test_a_download_of_nothing_leaves_nothing(self, store: Store, tmp_path: Path) -> None:
        kept = tmp_path / "kept"
        kept.write_bytes(b"old")
        for target in (kept, tmp_path / "fresh"):
            with pytest.raises(NotFound):
                store.download("not/there", target)
        assert [p.name for p in tmp_path.rglob("*") if p.is_file() and p.parent == tmp_path] == ["kept"]
        assert kept.read_bytes() == b"old"

    def test_an_upload_of_no_file_leaves_nothing(self, store: Store, tmp_path: Path) -> None:
        with pytest.raises(MissingError, match="does not exist"):
            store.upload(tmp_path / "nothing", "key")
        assert keys(store, "") == []
