"""The GCS emulator judged by Google's own client, which nobody here wrote, and by plain HTTP."""

from __future__ import annotations

import io
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

import servers
from hostler.emulators.gcs import DROPPED, LOST, GcsEmulator, Kind, busy

storage = servers.later("google.cloud.storage")
exceptions = servers.later("google.api_core.exceptions")

DATA = bytes(range(256)) * 4 + b"--boundary\r\n"


@pytest.fixture
def client(gcs: GcsEmulator) -> Iterator[storage.Client]:
    with storage.Client(project="p") as made:
        yield made


@pytest.fixture
def bucket(client: storage.Client) -> storage.Bucket:
    return client.bucket(servers.BUCKET)


def test_buckets_are_made_shown_and_removed(client: storage.Client) -> None:
    made = client.create_bucket("another")
    assert [b.name for b in client.list_buckets()] == ["another", servers.BUCKET]
    with pytest.raises(exceptions.Conflict):
        client.create_bucket("another")
    made.blob("k").upload_from_string(b"x")
    with pytest.raises(exceptions.Conflict, match="not empty"):
        made.delete()
    made.delete(force=True)
    assert client.lookup_bucket("another") is None
    with pytest.raises(exceptions.NotFound):
        made.blob("k").upload_from_string(b"x")


@pytest.mark.parametrize("name", ["k", "a/b c/ü%2F?#&=+'\"<>", "x" * 500])
def test_what_went_up_comes_down_with_its_facts(bucket: storage.Bucket, name: str) -> None:
    blob = bucket.blob(name)
    blob.metadata = {"who": "me"}
    blob.upload_from_string(DATA, content_type="image/png")
    found = bucket.get_blob(name)
    assert (found.name, found.size, found.content_type) == (name, len(DATA), "image/png")
    assert (found.metadata, found.generation) == ({"who": "me"}, blob.generation)
    assert found.download_as_bytes(checksum="crc32c") == found.download_as_bytes(checksum="md5") == DATA
    assert found.download_as_bytes(start=3, end=9) == DATA[3:10]
    assert [one.name for one in bucket.list_blobs()] == [name]


def test_a_resumable_upload_comes_in_chunks(bucket: storage.Bucket, gcs: GcsEmulator) -> None:
    data = DATA * 700
    blob = bucket.blob("big", chunk_size=256 * 1024)
    with blob.open("wb", chunk_size=256 * 1024) as file:
        file.write(data)
    assert bucket.blob("big").download_as_bytes() == data
    blob.upload_from_file(io.BytesIO(data[1:]))
    assert bucket.blob("big").download_as_bytes() == data[1:]
    assert gcs.counts.of(Kind.PART, key="big") == 6
    assert gcs.pending() == []


@pytest.mark.parametrize("fault", [busy(503), DROPPED, LOST], ids=["503", "dropped", "lost"])
def test_a_resumable_upload_goes_on_after_a_fault(
    bucket: storage.Bucket, gcs: GcsEmulator, fault: object
) -> None:
    gcs.faults.next(fault, Kind.PART, key="big")  # type: ignore[arg-type]
    blob = bucket.blob("big", chunk_size=256 * 1024)
    blob.upload_from_file(io.BytesIO(DATA * 500))
    assert (gcs.content(servers.BUCKET, "big"), gcs.writes(), gcs.faults.met) == (DATA * 500, 1, 1)


def test_preconditions_hold(bucket: storage.Bucket) -> None:
    blob = bucket.blob("k")
    blob.upload_from_string(b"1", if_generation_match=0)
    first = blob.generation
    for wrong in (0, first - 1):
        with pytest.raises(exceptions.PreconditionFailed):
            bucket.blob("k").upload_from_string(b"2", if_generation_match=wrong)
        with pytest.raises(exceptions.PreconditionFailed):
            bucket.blob("k").delete(if_generation_match=wrong or 1)
    with pytest.raises(exceptions.PreconditionFailed):
        bucket.blob("k", chunk_size=256 * 1024).upload_from_file(io.BytesIO(b"2"), if_generation_match=0)
    blob.upload_from_string(b"3", if_generation_match=first)
    assert blob.generation > first
    with pytest.raises(exceptions.PreconditionFailed):
        bucket.blob("k").download_as_bytes(if_generation_match=first)
    with pytest.raises(exceptions.NotFound):
        bucket.blob("k", generation=first).download_as_bytes()
    blob.delete(if_generation_match=blob.generation)
    assert not bucket.blob("k").exists()


def test_of_racing_creators_and_of_racing_swaps_one_succeeds(bucket: storage.Bucket) -> None:
    barrier = threading.Barrier(8)

    def swap(n: int, expected: int) -> int | None:
        barrier.wait()
        blob = bucket.blob("k")
        try:
            blob.upload_from_string(b"%d" % n, if_generation_match=expected)
        except exceptions.PreconditionFailed:
            return None
        return int(blob.generation)

    generation = 0
    with ThreadPoolExecutor(8) as pool:
        for _ in range(5):
            told = list(pool.map(swap, range(8), [generation] * 8))
            [generation] = [one for one in told if one is not None]
            assert bucket.get_blob("k").generation == generation
            assert told[int(bucket.blob("k").download_as_bytes())] == generation


def test_listings_page_fold_and_start(client: storage.Client, bucket: storage.Bucket) -> None:
    names = [f"d/{n}" for n in range(5)] + ["d-1", "d/sub/x", "d/sub/y", "e"]
    for name in names:
        bucket.blob(name).upload_from_string(b"x")

    def listed(**how: object) -> list[str]:
        return [one.name for one in client.list_blobs(bucket, **how)]

    assert listed() == listed(page_size=2) == sorted(names)
    assert listed(prefix="d/s") == ["d/sub/x", "d/sub/y"]
    assert listed(start_offset="d/3", end_offset="d/sub/y") == ["d/3", "d/4", "d/sub/x"]
    pages = client.list_blobs(bucket, prefix="d/", delimiter="/", page_size=2)
    assert [one.name for one in pages] == [f"d/{n}" for n in range(5)]
    assert pages.prefixes == {"d/sub/"}


def test_copies_compositions_patches_and_batches(client: storage.Client, bucket: storage.Bucket) -> None:
    for name in ("a", "b"):
        bucket.blob(name).upload_from_string(name.encode())
    copied = bucket.copy_blob(bucket.blob("a"), bucket, "c")
    with pytest.raises(exceptions.PreconditionFailed):
        bucket.copy_blob(bucket.blob("b"), bucket, "c", if_generation_match=0)
    bucket.blob("all").compose([bucket.blob("a"), bucket.blob("b"), copied])
    assert bucket.blob("all").download_as_bytes() == b"aba"
    copied.metadata = {"x": "1"}
    copied.patch()
    found = bucket.get_blob("c")
    assert (found.metadata, found.metageneration, found.generation) == ({"x": "1"}, 2, copied.generation)
    bucket.rename_blob(found, "moved")
    missing: list[object] = []
    bucket.delete_blobs(["a", "nothing", "b"], on_error=missing.append)
    assert missing == ["nothing"]
    with client.batch():
        bucket.blob("all").delete()
        bucket.blob("moved").delete()
    assert list(bucket.list_blobs()) == []


def test_parts_uploaded_side_by_side_are_put_together(
    bucket: storage.Bucket, gcs: GcsEmulator, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Google's transfer manager speaks the XML API."""
    manager = servers.library("google.cloud.storage.transfer_manager")
    path = tmp_path_factory.mktemp("up") / "big"
    path.write_bytes(DATA * 1000)
    manager.upload_chunks_concurrently(
        str(path), bucket.blob("big"), chunk_size=400_000, worker_type=manager.THREAD, max_workers=2
    )
    assert gcs.content(servers.BUCKET, "big") == DATA * 1000
    assert (gcs.counts.of(Kind.PART, key="big"), gcs.counts.of(Kind.FINISH), gcs.pending()) == (3, 1, [])


def test_tokens_of_the_metadata_server_are_taken_until_they_expire() -> None:
    with GcsEmulator("b", strict=True) as gcs:
        token = f"{gcs.url}/computeMetadata/v1/instance/service-accounts/default/token"
        given = json.load(fetched(token, {"Metadata-Flavor": "Google"}))
        headers = {"Authorization": f"Bearer {given['access_token']}"}
        assert json.load(fetched(f"{gcs.url}/storage/v1/b/b", headers))["name"] == "b"
        gcs.tokens.expire()
        for refused in (headers, {}, {"Authorization": "Bearer emulator"}):
            with pytest.raises(urllib.error.HTTPError, match="401"):
                fetched(f"{gcs.url}/storage/v1/b/b", refused)
        with pytest.raises(urllib.error.HTTPError, match="403"):
            fetched(token, {})


def fetched(url: str, headers: dict[str, str]) -> io.BytesIO:
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as answer:
        return io.BytesIO(answer.read())


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/storage/v1/b/hostler-test/o/k?ifSomethingNew=1", {}),
        ("/storage/v1/b/hostler-test/o?matchGlob=**", {}),
        ("/storage/v1/b/hostler-test/iam", {}),
        ("/hostler-test/k", {"x-goog-if-something-new": "1"}),
        ("/hostler-test/k", {"If-Modified-Since": "Thu, 01 Jan 1970 00:00:00 GMT"}),
        ("/hostler-test?prefix=x", {}),
    ],
)
def test_what_it_does_not_know_is_refused_not_ignored(
    gcs: GcsEmulator, bucket: storage.Bucket, path: str, headers: dict[str, str]
) -> None:
    bucket.blob("k").upload_from_string(b"x")
    with pytest.raises(urllib.error.HTTPError) as caught:
        fetched(gcs.url + path, headers)
    assert caught.value.code in (404, 501)
    assert caught.value.code == 501 or "iam" in path
