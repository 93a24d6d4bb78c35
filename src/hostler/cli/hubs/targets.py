"""Places that a folder of files can be pushed to: a hub, a bucket, a folder of this machine."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any, Protocol

from hostler.cli.extras import needs
from hostler.errors import MachineError, StoreError, UsageError
from hostler.frozen import dataclass
from hostler.spec import project
from hostler.store import Store, registry

HUB, FILE = "hf://", "file://"
_NAME = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*", re.ASCII)
STORE = os.path.basename(project.default_store(Path()))
LOGIN = "hf auth login, or HF_TOKEN"


class Target(Protocol):
    """A place for files."""

    @property
    def shown(self) -> str:
        """The place, as a person is asked about it."""

    def check(self) -> None:
        """Raise what is known to be wrong before anything is fetched."""

    def there(self, names: Collection[str]) -> list[str]:
        """Files of these names that are there already and would be replaced."""

    def push(self, folder: Path, names: Collection[str], message: str) -> str:
        """Bring the files there; where they can be seen."""


def target(word: str, *, public: bool) -> Target:
    """The place that a word means."""
    if not word.strip():
        raise UsageError("no target is named", hint="hf://OWNER/NAME, s3://…, or a folder")
    if word.startswith(HUB):
        name = word.removeprefix(HUB).strip("/")
        if not _NAME.fullmatch(name) or ".." in name or "--" in name:
            raise UsageError(f"{word} is not a model of the hub", hint="hf://OWNER/NAME")
        return _Hub(name, public, f"the hub, {name}, {'public' if public else 'private'} if it is new")
    if public:
        raise UsageError("--public is for a hub", hint="hf://OWNER/NAME")
    if word.startswith(FILE):
        return _Folder(Path(registry.folder_of(word)), word)
    if "://" in word:
        return _Bucket(word.rstrip("/"), word.rstrip("/"))
    return _Folder(Path(word), word)


@dataclass(frozen=True)
class _Hub:
    """A model repository of Hugging Face, or of a server that `HF_ENDPOINT` names."""

    name: str
    public: bool
    shown: str

    def check(self) -> None:
        if not self._api().token:
            raise MachineError("no token for the hub", hint=LOGIN)

    def there(self, names: Collection[str]) -> list[str]:
        found: list[str] = self._asked(lambda api: self._listed(api, names))
        return found

    def _listed(self, api: Any, names: Collection[str]) -> list[str]:
        if not api.repo_exists(self.name):
            return []
        return sorted(set(api.list_repo_files(self.name)) & set(names) - {".gitattributes"})

    def push(self, folder: Path, names: Collection[str], message: str) -> str:
        url: str = self._asked(lambda api: self._pushed(api, folder, message))
        return url

    def _pushed(self, api: Any, folder: Path, message: str) -> str:
        api.create_repo(self.name, private=not self.public, exist_ok=True)
        done = api.upload_folder(repo_id=self.name, folder_path=folder, commit_message=message)
        return str(done.commit_url)

    def _api(self) -> Any:
        with needs("hub"):
            from huggingface_hub import HfApi, get_token
            from huggingface_hub.utils import disable_progress_bars

        disable_progress_bars()
        return HfApi(token=get_token())

    def _asked(self, do: Any) -> Any:
        api = self._api()
        from huggingface_hub.errors import HfHubHTTPError

        try:
            return do(api)
        except HfHubHTTPError as error:
            code = getattr(error.response, "status_code", None)
            text = " ".join(str(getattr(error, "server_message", None) or error).split())[:200]
            hint = f"{LOGIN}, with the right to write" if code in (401, 403) else ""
            raise StoreError(f"the hub refused {self.name}: {_without(text, api.token)}", hint=hint) from None
        except _silences() as error:
            raise StoreError(f"the hub did not answer: {_without(str(error), api.token)}") from None


def _silences() -> tuple[type[Exception], ...]:
    """Errors of a hub that does not answer: its client has asked by three libraries so far."""
    known = {"httpx2": "HTTPError", "httpx": "HTTPError", "requests": "RequestException"}
    loaded = [(sys.modules.get(name), error) for name, error in known.items()]
    return (OSError, *(getattr(module, error) for module, error in loaded if module))


def _without(text: str, token: str | None) -> str:
    return text.replace(token, "***") if token else text


@dataclass(frozen=True)
class _Bucket:
    """A prefix of a bucket, or a folder of another machine: any store."""

    url: str
    shown: str

    def check(self) -> None:
        any(self._store().list(""))  # asks for one page; a probe would write before anybody has agreed

    def _store(self) -> Store:
        return registry.open_at(self.url)

    def there(self, names: Collection[str]) -> list[str]:
        return sorted({entry.key for entry in self._store().list("")} & set(names))

    def push(self, folder: Path, names: Collection[str], message: str) -> str:
        store = self._store()
        for name in names:
            store.upload(folder / name, name)
        return self.url


@dataclass(frozen=True)
class _Folder:
    path: Path
    shown: str

    def check(self) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise UsageError(f"{self.path} is a file", hint="name a folder")
        whole = self.path.resolve()
        if STORE in whole.parts:
            raise UsageError(f"{self.path} is in a store of hostler", hint="name a folder of its own")
        for name in (*project.NAMES, STORE):
            if os.path.lexists(whole / name):
                hint = "name a folder of its own, which may be new"
                raise UsageError(f"{self.path} is the folder of a project: it holds {name}", hint=hint)

    def there(self, names: Collection[str]) -> list[str]:
        for name in names:
            if not (self.path / name).parent.resolve().is_relative_to(self.path.resolve()):
                raise UsageError(
                    f"{(self.path / name).parent} leads out of {self.path}", hint="name another folder"
                )
        return sorted(name for name in names if os.path.lexists(self.path / name))

    def push(self, folder: Path, names: Collection[str], message: str) -> str:
        """Each file arrives beside its place first."""
        for name in names:
            try:
                _arrive(folder / name, self.path / name)
            except OSError as error:
                raise MachineError(f"{self.path / name}: {error.strerror}") from error
        return str(self.path)


def _arrive(source: Path, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    beside = place.with_name(f".hostler-push-{os.urandom(6).hex()}")  # a name may be as long as names can be
    try:
        shutil.copyfile(source, beside)
        os.replace(beside, place)
    finally:
        beside.unlink(missing_ok=True)
