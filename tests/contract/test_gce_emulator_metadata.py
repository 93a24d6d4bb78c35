"""The metadata server of an emulated machine, and what its processes reach with it."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

import servers
from gce_api import ZONE, Api, Refused, until
from hostler.emulators.gce import GceEmulator, emulator

google_auth = servers.library("google.auth.compute_engine")


@pytest.fixture
def gce() -> Iterator[GceEmulator]:
    with emulator(scale=60, buckets=["b"], strict=True) as started:
        yield started


@pytest.fixture
def api(gce: GceEmulator, monkeypatch: pytest.MonkeyPatch) -> Api:
    return Api(gce)


def read(host: str, path: str, method: str = "GET", data: bytes | None = None, flavor: bool = True) -> str:
    headers = {"Metadata-Flavor": "Google"} if flavor else {}
    url = f"http://{host}/computeMetadata/v1/{path}"
    with urllib.request.urlopen(
        urllib.request.Request(url, data, headers, method=method), timeout=20
    ) as answer:
        assert answer.headers["Metadata-Flavor"] == "Google"
        return str(answer.read().decode())


@pytest.fixture
def host(gce: GceEmulator) -> str:
    """The metadata server of a machine named one."""
    with emulator_open(gce):
        Api(gce).insert(metadata={"colour": "blue", "enable-guest-attributes": "TRUE"}, tags={"items": ["a"]})
    (machine,) = gce.machines()
    assert machine.server is not None
    return machine.server.host


class emulator_open:
    """The API without tokens, for making the scene."""

    def __init__(self, gce: GceEmulator) -> None:
        self._gate = gce._gate

    def __enter__(self) -> None:
        self._gate.strict = False

    def __exit__(self, *_: object) -> None:
        self._gate.strict = True


def test_a_machine_reads_about_itself(host: str, gce: GceEmulator) -> None:
    assert read(host, "instance/name") == "one"
    assert read(host, "instance/zone") == f"projects/123456789012/zones/{ZONE}"
    assert read(host, "instance/id") == gce.machines()[0].body["id"]
    assert read(host, "instance/hostname") == f"one.{ZONE}.c.emulated.internal"
    assert read(host, "project/project-id") == "emulated"
    assert read(host, "instance/attributes/colour") == "blue"
    assert read(host, "instance/preempted") == "FALSE"
    assert read(host, "instance/scheduling/preemptible") == "TRUE"
    assert read(host, "instance/maintenance-event") == "NONE"
    assert read(host, "instance/service-accounts/") == (
        "default/\n123456789012-compute@developer.gserviceaccount.com/\n"
    )
    assert "network-interfaces/" in read(host, "instance/").splitlines()
    assert read(host, "instance/network-interfaces/0/access-configs/0/external-ip").startswith("127.77.")


def test_all_of_it_comes_as_json_when_asked_recursively(host: str) -> None:
    whole = json.loads(read(host, "?recursive=true&alt=json"))
    assert whole["instance"]["attributes"]["colour"] == "blue"
    assert whole["instance"]["serviceAccounts"]["default"]["aliases"] == ["default"]
    assert json.loads(read(host, "instance/tags?alt=json")) == ["a"]


def test_without_the_header_and_off_the_path_nothing_is_said(host: str) -> None:
    with pytest.raises(urllib.error.HTTPError, match="403"):
        read(host, "instance/name", flavor=False)
    for path in (
        "instance/nothing",
        "instance/attributes/nothing",
        "instance/name/below",
        "instance/disks/7",
    ):
        with pytest.raises(urllib.error.HTTPError, match="404"):
            read(host, path)


def test_wait_for_change_blocks_and_a_known_state_returns_immediately(host: str, gce: GceEmulator) -> None:
    heard: list[str] = []
    asking = threading.Thread(
        target=lambda: heard.append(read(host, "instance/maintenance-event?wait_for_change=true"))
    )
    asking.start()
    time.sleep(0.1)
    assert not heard
    gce.machines()[0].board.tell(maintenance="TERMINATE_ON_HOST_MAINTENANCE")
    asking.join(10)
    assert heard == ["TERMINATE_ON_HOST_MAINTENANCE"]
    assert read(host, "instance/name?wait_for_change=true&last_etag=0") == "one"
    assert read(host, "instance/name?wait_for_change=true&timeout_sec=0.1") == "one"


def test_who_waits_is_answered_when_the_machine_goes(host: str, gce: GceEmulator) -> None:
    ended: list[bool] = []

    def ask() -> None:
        try:
            read(host, "instance/preempted?wait_for_change=true")
        except OSError:
            pass
        ended.append(True)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    time.sleep(0.1)
    gce.preempt("one", notice=False)
    asking.join(10)
    assert ended


def test_guest_attributes_are_written_inside_and_read_outside(host: str, api: Api) -> None:
    read(host, "instance/guest-attributes/hostler/state", "PUT", b"ready")
    assert read(host, "instance/guest-attributes/hostler/state") == "ready"
    with emulator_open(api.gce):
        path = f"/zones/{ZONE}/instances/one/getGuestAttributes"
        (entry,) = api.get(path, queryPath="hostler/")["queryValue"]["items"]
        assert entry == {"namespace": "hostler", "key": "state", "value": "ready"}
        assert api.get(path, variableKey="hostler/state")["variableValue"] == "ready"
        with pytest.raises(Refused, match="404"):
            api.get(path, queryPath="other/")


def test_api_and_bucket_open_with_a_token_and_refuse_without(host: str, gce: GceEmulator) -> None:
    token = json.loads(read(host, "instance/service-accounts/default/token"))["access_token"]
    urls = (f"{gce.url}/projects/emulated/zones", f"{gce.gcs.url}/storage/v1/b/b/o" if gce.gcs else "")
    for url in urls:
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(url)
        urllib.request.urlopen(
            urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
        ).close()


def test_machine_writes_its_bucket_with_its_own_accounts_token(api: Api) -> None:
    script = """python - <<'END'
import json, os, urllib.request
url = f"http://{os.environ['GCE_METADATA_HOST']}/computeMetadata/v1/instance/service-accounts/default/token"
asked = urllib.request.Request(url, headers={"Metadata-Flavor": "Google"})
token = json.load(urllib.request.urlopen(asked))["access_token"]
url = os.environ["STORAGE_EMULATOR_HOST"] + "/b/from-the-machine"
told = urllib.request.Request(url, b"hello", {"Authorization": f"Bearer {token}"}, method="PUT")
urllib.request.urlopen(told)
END"""
    with emulator_open(api.gce):
        api.insert(script=script)
    assert api.gce.gcs is not None
    gcs = api.gce.gcs
    until(lambda: gcs.content("b", "from-the-machine") == b"hello", "an object in the bucket")


def test_googles_own_credentials_find_their_token_by_the_environment(
    gce: GceEmulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = servers.library("google.auth.transport.requests")
    for name, value in gce.environ().items():
        monkeypatch.setenv(name, value)
    import importlib

    from google.auth.compute_engine import _metadata

    importlib.reload(_metadata)
    account = google_auth.Credentials()
    account.refresh(requests.Request())
    assert gce._world.tokens.good(f"Bearer {account.token}")
