"""`libsvm/NAME`: the names that libsvmdata has, from a site that runs here."""

from __future__ import annotations

import bz2
import lzma
import multiprocessing
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from hostler.errors import MissingError, SpecError
from hostler.train.config import Config
from hostler.train.data import download, libsvm
from hostler.train.data.libsvm_names import FILES

# every name of the library, version 0.5
# fmt: off
NAMES = [
    "HIGGS", "SUSY", "YearPredictionMSD", "YearPredictionMSD_test", "a1a", "a1a_test", "a2a",
    "a2a_test", "a3a", "a3a_test", "a4a", "a4a_test", "a5a", "a5a_test", "a6a", "a6a_test", "a7a",
    "a7a_test", "a8a", "a8a_test", "a9a", "a9a_test", "abalone", "abalone_scale", "aloi", "australian",
    "australian_scale", "bibtex", "bodyfat", "breast-cancer", "breast-cancer_scale", "cadata",
    "cifar10", "cifar10_test", "cod-rna", "cod-rna_test", "colon-cancer", "connect-4",
    "covtype.binary", "covtype.multiclass", "covtype.multiclass_scale", "cpusmall", "delicious",
    "diabetes", "diabetes_scale", "dna", "duke breast-cancer", "epsilon", "epsilon_test", "eunite2001",
    "finance", "finance-tf-idf", "fourclass", "fourclass_scale", "german.numer", "german.numer_scale",
    "gisette", "glass", "heart", "heart_scale", "housing", "ijcnn1", "ijcnn1_test", "ionosphere",
    "iris", "kdda_train", "letter", "leukemia", "leukemia_test", "liver-disorders",
    "liver-disorders_scale", "liver-disorders_test", "madelon", "madelon_test", "mediamill",
    "mediamill_test", "mnist", "news20.binary", "news20.multiclass", "pendigits", "pendigits_test",
    "phishing", "rcv1.binary", "rcv1.binary_test", "rcv1.multiclass", "rcv1.multiclass_test",
    "rcv1_topics_test", "real-sim", "scene-classification", "scene-classification_test", "sector",
    "sector.scale", "sector.scale_test", "sector_test", "sensit", "siam-competition2007",
    "siam-competition2007_test", "skin_nonskin", "smallNORB", "sonar", "splice", "splice_scale",
    "splice_test", "svmguide1", "svmguide1_test", "url", "usps", "usps_test", "w1a", "w1a_test", "w2a",
    "w2a_test", "w3a", "w3a_test", "w4a", "w4a_test", "w5a", "w5a_test", "w6a", "w6a_test", "w7a",
    "w7a_test", "w8a", "w8a_test", "w9a", "w9a_test", "webspam", "yeast", "yeast_test",
]
# fmt: on
ROWS = "".join(f"{n % 3 + 1} 1:{n} 4:0.5\n" for n in range(4000)).encode()


class Site(ThreadingHTTPServer):
    """The site: files by address, what was asked for, and after how many bytes each answer breaks."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files: dict[str, bytes] = {}
        self.asked: list[tuple[str, str]] = []
        self.breaks: list[int] = []
        self.marks = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        site = self.server
        assert isinstance(site, Site)
        held = self.headers.get("Range", "")
        site.asked.append((self.path.lstrip("/"), held))
        content = site.files.get(self.path.lstrip("/"))
        if content is None:
            self.send_error(404)
            return
        mark = f'"{hash(content)}"'
        start = int(re.sub(r"\D", "", held) or 0) if self.headers.get("If-Range") == mark else 0
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(content) - start))
        if site.marks:
            self.send_header("ETag", mark)
        self.end_headers()
        self.wfile.write(content[start:][: site.breaks.pop(0) if site.breaks else None])

    def log_message(self, *words: object) -> None:
        pass


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    server = Site()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setattr(libsvm, "SITE", server.url)
    monkeypatch.setattr(download, "PAUSE", 0.0)
    yield server
    server.shutdown()
    server.server_close()


def config(folder: Path, *splits: str) -> Config:
    return Config(data_dir=str(folder), data_splits_map={one: one for one in ("train", *splits)})


def test_every_name_of_the_library_is_known() -> None:
    assert len(NAMES) == 129
    assert [name for name in NAMES if name not in FILES] == []


@pytest.mark.parametrize("name", [name for name in NAMES if not FILES[name].startswith("multilabel/")])
def test_name_is_fetched_from_its_address_at_once(name: str, site: Site, tmp_path: Path) -> None:
    address = FILES[name]
    site.files[address] = bz2.compress(ROWS) if address.endswith(".bz2") else ROWS
    data = libsvm.load(config(tmp_path), name)
    assert [path for path, _ in site.asked] == [address]
    assert (len(data.splits["train"]), data.n_classes) == (4000, 3)


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("covtype.multiclass", "multiclass/covtype.bz2"),
        ("covtype.binary", "binary/covtype.libsvm.binary.bz2"),
        ("rcv1.binary", "binary/rcv1_train.binary.bz2"),
        ("news20.binary", "binary/news20.binary.bz2"),
    ],
)
def test_names_of_the_examples_have_their_addresses(name: str, address: str) -> None:
    assert FILES[name] == address


def test_test_split_is_the_librarys_test_set(site: Site, tmp_path: Path) -> None:
    site.files = {
        "binary/rcv1_train.binary.bz2": bz2.compress(ROWS),
        "binary/rcv1_test.binary.bz2": bz2.compress(ROWS[: len(ROWS) // 2].rpartition(b"\n")[0]),
    }
    data = libsvm.load(config(tmp_path, "test"), "rcv1.binary")
    assert len(data.splits["test"]) < len(data.splits["train"]) == 4000


def test_file_that_is_xz_by_now_is_found(site: Site, tmp_path: Path) -> None:
    site.files["binary/HIGGS.xz"] = lzma.compress(ROWS)
    assert len(libsvm.load(config(tmp_path), "HIGGS").splits["train"]) == 4000
    assert (tmp_path / "HIGGS.xz").is_file()


def test_set_with_several_labels_is_refused(site: Site, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="libsvm/bibtex has several labels for an example"):
        libsvm.load(config(tmp_path), "bibtex")


def test_name_that_nobody_knows_gets_a_near_one(site: Site, tmp_path: Path) -> None:
    with pytest.raises(MissingError) as caught:
        libsvm.load(config(tmp_path), "covtype.multiclas")
    assert "did you mean 'covtype.multiclass'" in caught.value.hint


def _load(folder: Path) -> int:
    return len(libsvm.load(config(folder), "covtype.multiclass").splits["train"])


def test_ten_processes_at_once_download_once(site: Site, tmp_path: Path) -> None:
    site.files["multiclass/covtype.bz2"] = bz2.compress(ROWS)
    with multiprocessing.get_context("fork").Pool(10) as pool:
        assert pool.map(_load, [tmp_path] * 10, chunksize=1) == [4000] * 10
    assert [path for path, _ in site.asked] == ["multiclass/covtype.bz2"]


def test_broken_download_goes_on_where_it_broke(site: Site, tmp_path: Path) -> None:
    site.files["binary/a9a"] = ROWS
    site.breaks = [1000, 500]
    assert len(libsvm.load(config(tmp_path), "a9a").splits["train"]) == 4000
    assert [held for _, held in site.asked] == ["", "bytes=1000-", "bytes=1500-"]
    assert (tmp_path / "a9a").read_bytes() == ROWS


def test_broken_download_starts_anew_without_a_mark(site: Site, tmp_path: Path) -> None:
    site.files["binary/a9a"], site.marks = ROWS, False
    site.breaks = [1000]
    libsvm.load(config(tmp_path), "a9a")
    assert [held for _, held in site.asked] == ["", ""]
    assert (tmp_path / "a9a").read_bytes() == ROWS


def test_file_that_changed_meanwhile_starts_anew(site: Site, tmp_path: Path) -> None:
    site.files["binary/a9a"] = ROWS[::-1]
    site.breaks = [1000] * download.TRIES
    with pytest.raises(MissingError, match=r"a9a cannot be fetched: the connection ended after"):
        libsvm.load(config(tmp_path), "a9a")
    assert not (tmp_path / "a9a").exists()
    site.files["binary/a9a"] = ROWS
    libsvm.load(config(tmp_path), "a9a")
    assert (tmp_path / "a9a").read_bytes() == ROWS


def test_file_of_another_kind_is_one_line(site: Site, tmp_path: Path) -> None:
    site.files["binary/a9a"] = b"<html>moved</html>"
    with pytest.raises(Exception, match=r"a9a:1 is not a line of a libsvm file"):
        libsvm.load(config(tmp_path), "a9a")
