"""The vault in Secret Manager, against the emulator and Google's own description of the API."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from importlib.resources import files

import pytest

from hostler.backends.gce import manager
from hostler.backends.gce.client import GceClient
from hostler.backends.gce.manager import SecretVault
from hostler.backends.gce.names import GceOwner
from hostler.emulators.gce import GceEmulator, emulator
from hostler.errors import CloudError, MissingError, UsageError

VALUES = {"A_KEY": 'multi\nline "quoted" $HOME 🔑', "B_KEY": "x" * 64 * 1024}
OWNER = GceOwner("cifar", "burst", "gs://runs/cifar")


@pytest.fixture
def gce(monkeypatch: pytest.MonkeyPatch) -> Iterator[GceEmulator]:
    with emulator(strict=True) as made:
        for name, value in made.environ().items():
            monkeypatch.setenv(name, value)
        yield made


@pytest.fixture
def vault(gce: GceEmulator) -> SecretVault:
    return vault_of(gce)


def vault_of(gce: GceEmulator, owner: GceOwner = OWNER) -> SecretVault:
    token = gce._world.tokens.issue
    return SecretVault(manager.client_for(GceClient("emulated", gce.url, token, patience=2.0)), owner)


def put(vault: SecretVault, launch: str = "burst/3", **values: str) -> str:
    given = values or VALUES
    vault.put(launch, given, time.time() + 3600)
    return vault.place(launch, list(given)).removeprefix("manager:")


def test_values_arrive_unchanged_and_are_gone_when_forgotten(gce: GceEmulator, vault: SecretVault) -> None:
    where = put(vault)
    assert "🔑" not in where and manager.read(where) == VALUES
    assert {one.generation for one in vault.things()} == {"3"} and len(gce.left()) == 2
    manager.forget(where)
    assert gce.left() == [] and list(vault.things(everywhere=True)) == []
    with pytest.raises(MissingError, match="secrets of this launch are gone from Secret Manager"):
        manager.read(where)
    manager.forget(where)
    vault.remove("burst/3", list(VALUES))


def test_another_value_of_a_launch_adds_a_version_that_counts(vault: SecretVault) -> None:
    put(vault, A_KEY="old")
    assert manager.read(put(vault, A_KEY="new")) == {"A_KEY": "new"}


def test_secrets_of_another_fleet_or_store_are_not_ours(gce: GceEmulator, vault: SecretVault) -> None:
    other = vault_of(gce, GceOwner("cifar", "burst", "gs://runs/other"))
    put(other, A_KEY="theirs")
    where = put(vault, A_KEY="ours")
    assert manager.read(where) == {"A_KEY": "ours"} and len(list(vault.things())) == 1
    assert sorted(one.ours for one in vault.things(everywhere=True)) == [False, True]


def test_google_itself_deletes_what_everybody_forgot(gce: GceEmulator, vault: SecretVault) -> None:
    where = put(vault, A_KEY="x")
    gce.secret_manager.clock = lambda: time.time() + 7200
    with pytest.raises(MissingError):
        manager.read(where)


def test_disabled_api_is_named_with_the_command_that_enables_it(gce: GceEmulator, vault: SecretVault) -> None:
    gce.secret_manager.disabled = True
    with pytest.raises(
        CloudError, match=r"not enabled in emulated.*gcloud services enable secretmanager"
    ) as error:
        put(vault, A_KEY="hush-hush-hush")
    assert "hush" not in str(error.value)


@pytest.mark.parametrize("denied", ["secrets.create", "versions.add", "versions.access", "secrets.list"])
def test_missing_rights_are_named_without_anything_of_a_value(
    gce: GceEmulator, vault: SecretVault, denied: str
) -> None:
    gce.secret_manager.denied.add(f"secretmanager.{denied}")
    with pytest.raises(
        CloudError, match=rf"Permission 'secretmanager\.{denied}' denied.*docs/gce.md"
    ) as error:
        manager.read(put(vault, A_KEY="hush-hush-hush"))
        list(vault.things())
    assert "hush" not in str(error.value)


def test_vm_without_the_right_to_delete_leaves_secrets_to_expire(
    gce: GceEmulator, vault: SecretVault
) -> None:
    where = put(vault, A_KEY="x")
    gce.secret_manager.denied.add("secretmanager.secrets.delete")
    manager.forget(where)
    assert len(gce.left()) == 1


def test_value_that_is_too_large_is_refused_before_any_request(gce: GceEmulator, vault: SecretVault) -> None:
    with pytest.raises(UsageError, match="65537 bytes: Secret Manager takes 65536"):
        put(vault, A_KEY="x" * 65537)
    assert gce.left() == []


@pytest.mark.parametrize(
    ("data", "total"), [(b"", 0), (b"123456789", 0xE3069283), (b"\0" * 32, 0x8A9136AA), (b"a", 0xC1D04330)]
)
def test_the_sum_is_the_one_that_everybody_computes(data: bytes, total: int) -> None:
    assert manager.crc32c(data) == total


def test_every_request_is_one_that_google_s_own_document_allows(gce: GceEmulator, vault: SecretVault) -> None:
    where = put(vault)
    manager.read(where)
    list(vault.things())
    manager.forget(where)
    folder = files("googleapiclient").joinpath("discovery_cache", "documents")
    found = json.loads(folder.joinpath("secretmanager.v1.json").read_text(encoding="utf-8"))
    secrets = found["resources"]["projects"]["resources"]["secrets"]
    methods = {**secrets["methods"], "access": secrets["resources"]["versions"]["methods"]["access"]}
    wanted = {"create", "addVersion", "access", "list", "delete"}
    seen = set[str]()
    for asked in gce.secret_manager.requests:
        name = _method(asked.method, asked.path)
        seen.add(name)
        method = methods[name]
        assert method["httpMethod"] == asked.method
        assert set(asked.query) <= set(method["parameters"]), (name, asked.query)
        if name == "create":
            assert set(asked.body) <= set(found["schemas"]["Secret"]["properties"])
    assert seen == wanted
    assert set(found["schemas"]["SecretPayload"]["properties"]) >= {"data", "dataCrc32c"}


def _method(verb: str, path: str) -> str:
    if path.endswith(":addVersion"):
        return "addVersion"
    if path.endswith(":access"):
        return "access"
    return {"POST": "create", "GET": "list", "DELETE": "delete"}[verb]
