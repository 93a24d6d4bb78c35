"""Environment variables: the ones a run's process is given, and the ones hostler reads.

Nobody else reads or writes the environment (`settings.py` aside, for times and sizes).
"""

from __future__ import annotations

import os
import typing
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from hostler.errors import MachineError, UsageError
from hostler.private import closed_folder, own_folder

if typing.TYPE_CHECKING:
    from pathlib import Path  # --help does without, and is quicker for it

# Given to a run's process. docs/scripts.md documents each.
STORE = "HOSTLER_STORE"
SWEEP = "HOSTLER_SWEEP"
RUN = "HOSTLER_RUN"
ATTEMPT = "HOSTLER_ATTEMPT"
RUN_DIR = "HOSTLER_DIR"  # the local folder through which worker and process speak
CHECKPOINT_DIR = "HOSTLER_CHECKPOINT_DIR"
OUTPUT_DIR = "HOSTLER_OUTPUT_DIR"
DATA = "HOSTLER_DATA"
PARAMS = "HOSTLER_PARAMS"  # path of a JSON file with the parameters
MARK = "HOSTLER_MARK"  # the same in all processes of one attempt, and in no others: how strays are found
BOARD = "HOSTLER_BOARD"  # where the ranks of several machines agree, as address:port
BOARD_SECRET = "HOSTLER_BOARD_SECRET"
SEATS = "HOSTLER_SEATS"  # the runs that share this process: path of a JSON file
KEPT = "HOSTLER_KEPT"  # a folder in which a process waits for more of them, once all have left
FUNCTION = "HOSTLER_FUNCTION"  # sha256 of the packed function that a run calls, as its spec has it
ELASTIC = "HOSTLER_ELASTIC"  # the run may go on with another number of processes than before
LAUNCHER = "HOSTLER_LAUNCHER"  # number of the process that started this one as a rank

# Read by hostler itself.
PORTS = "HOSTLER_PORTS"
ADDRESS = "HOSTLER_ADDRESS"  # by which other machines reach this one, where its platform tells
JOB_ENDS = "HOSTLER_JOB_ENDS"  # when a scheduler ends the job of this worker, in seconds since 1970
POD = "HOSTLER_POD"  # name of the pod that this process is in
CACHE = "HOSTLER_CACHE"
WARM = "HOSTLER_WARM"
TOGETHER = "HOSTLER_TOGETHER"
DEVICES = "HOSTLER_DEVICES"  # how many devices this machine counts for `multi_gpu: true`
HOST = "HOSTLER_HOST"  # what a machine is called whose own name says nothing: a container, an emulated VM
CLOUD_ENDPOINT = "HOSTLER_GCE_ENDPOINT"
PRICES = "HOSTLER_PRICES"  # a person's own table of Google's prices
DRILL = "HOSTLER_DRILL"  # where a drilled process writes down what it carries
DRILL_EVERY = "HOSTLER_DRILL_EVERY"  # seconds between two checkpoints of the library in a drill

# by these, processes of two runs of one sweep differ
_runs_own = frozenset(
    {
        STORE,
        SWEEP,
        RUN,
        ATTEMPT,
        RUN_DIR,
        CHECKPOINT_DIR,
        OUTPUT_DIR,
        DATA,
        PARAMS,
        MARK,
        SEATS,
        KEPT,
        FUNCTION,
    }
)

_held: dict[str, str] = {}  # secrets that came to this process by another way than its environment


def cache_dir() -> Path:
    """The folder of unpacked code, data, environments and runs here; nobody else can write to it."""
    return closed_folder(_cache_path())


def machine_dir() -> Path:
    """Facts of this machine and boot alone (locks, who runs what): open to nobody else, on no shared disk."""
    return own_folder(_machine_path())


def script_dirs() -> list[Path]:
    """The places for folders of scripts by hand: in the cache, and where that cannot be used."""
    return [_scripts(cache_dir()), _scripts(machine_dir())]


def script_folders() -> list[Path]:
    """The folders of scripts by hand on this machine, alive or dead. Where there are none this costs two
    looks; what another user made or can write to is passed over."""
    paths: list[Path] = []
    for path, checked in ((_cache_path, cache_dir), (_machine_path, machine_dir)):
        try:
            names = os.listdir(_scripts(path()))
            paths += [_scripts(checked()) / name for name in sorted(names)] if names else []
        except (OSError, RuntimeError, MachineError):  # RuntimeError: a user without a home
            continue
    return paths


def _scripts(base: Path) -> Path:
    return base / "alone"


def _path(text: str) -> Path:
    from pathlib import Path

    return Path(text)


def _home() -> Path:
    from pathlib import Path

    return Path.home()


def _cache_path() -> Path:
    given = os.environ.get(CACHE)
    if given:
        return _path(given).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (_path(base) if base else _home() / ".cache") / "hostler"


def _machine_path() -> Path:
    return _path(_runtime_dir() or os.environ.get("TMPDIR") or "/tmp") / f"hostler-{os.getuid()}"


def _runtime_dir() -> str | None:
    """XDG_RUNTIME_DIR, unless it belongs to another user: `su` and `sudo` may leave one behind."""
    xdg_runtime_dir = os.environ.get("XDG_RUNTIME_DIR")
    try:
        return (
            xdg_runtime_dir if xdg_runtime_dir and os.stat(xdg_runtime_dir).st_uid == os.geteuid() else None
        )
    except OSError:  # not there: whoever writes to it learns why
        return xdg_runtime_dir


def state_dir() -> Path:
    """Where this user's programs keep what is theirs alone, on whatever machine."""
    base = os.environ.get("XDG_STATE_HOME")
    return (_path(base) if base else _home() / ".local" / "state") / "hostler"


def prices() -> Path | None:
    """A table of prices in place of the one that comes with hostler."""
    given = os.environ.get(PRICES)
    return _path(given).expanduser() if given else None


def visible_gpus() -> str | None:
    """CUDA_VISIBLE_DEVICES as the site set it: ids, UUIDs or MIG names; None if unset."""
    return os.environ.get("CUDA_VISIBLE_DEVICES")


def hold(secrets: Mapping[str, str]) -> None:
    """Keep these for the runs of this process, and nowhere that a list of processes shows."""
    _held.update(secrets)


def secret(name: str) -> str | None:
    return _held.get(name) or os.environ.get(name)


def secrets(names: Iterable[str]) -> dict[str, str]:
    """The secrets among these names that have a value here."""
    return {name: value for name in dict.fromkeys(names) if (value := secret(name))}


def inherited() -> dict[str, str]:
    """A copy of this process's environment, and the secrets that it holds, to build a run's from."""
    return {**os.environ, **_held}


def bare() -> dict[str, str]:
    """The same without what it holds: for processes beside a run."""
    return dict(os.environ)


def apart(environ: Mapping[str, str]) -> dict[str, str]:
    """An environment for a process beside a run: less what makes it one of the run's own."""
    return {name: value for name, value in environ.items() if name not in _runs_own}


def adopt_run(given: Mapping[str, str]) -> None:
    """This process is another run's from now on. By its mark it is found, which stays what it was."""
    for name in _runs_own - {MARK, KEPT}:
        os.environ.pop(name, None)
        if name in given:
            os.environ[name] = given[name]


def warm() -> bool:
    """Whether scripts may be started from a parent that has imported what they import."""
    return _is_on(WARM)


def together() -> bool:
    """Whether runs may share a process on this machine."""
    return _is_on(TOGETHER)


def check_switches() -> None:
    """UsageError if one is neither on nor off."""
    warm()
    together()


def _is_on(name: str) -> bool:
    """A switch that is on unless it is turned off."""
    word = os.environ.get(name, "").strip().lower()
    if word in ("0", "no", "false", "off"):
        return False
    if word in ("", "1", "yes", "true", "on"):
        return True
    raise UsageError(f"{name}={word} is neither on nor off", hint="0 or 1")


def seats() -> Path | None:
    """The file that names the runs of this process, where it has several."""
    given = os.environ.get(SEATS)
    return _path(given) if given else None


def kept() -> Path | None:
    """The folder in which this process may wait for other runs; None: it ends with those that it has."""
    given = os.environ.get(KEPT)
    return _path(given) if given else None


def function_sha() -> str:
    """The hash that the packed function of this run must have."""
    return os.environ.get(FUNCTION, "")


def mark() -> str | None:
    """The mark of the run that this process is a part of."""
    return os.environ.get(MARK)


def without_prefixes(*prefixes: str) -> dict[str, str]:
    """This environment less the variables that begin so."""
    return {name: value for name, value in os.environ.items() if not name.startswith(prefixes)}


def no_color() -> bool:
    return bool(os.environ.get("NO_COLOR"))


def completing() -> bool:
    """Whether a shell asks what may come next: click writes bytes then, and no person reads them."""
    return "_HOSTLER_COMPLETE" in os.environ


def dumb() -> bool:
    """A terminal on which nothing can be drawn over."""
    return os.environ.get("TERM", "") in ("dumb", "unknown")


def host() -> str:
    """Name of this machine for people: its own, unless it was given another."""
    return os.environ.get(HOST) or os.uname().nodename


def store_url() -> str | None:
    """The store named by the environment: a user's choice, or the one a run belongs to."""
    return os.environ.get(STORE)


def hub() -> tuple[str, str | None]:
    """Address of the hub that `hf://` means, and the token for it, if there is one."""
    address = os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
    return address.rstrip("/"), os.environ.get("HF_TOKEN") or None


def for_git(url: str, token: str | None) -> dict[str, str]:
    """This environment for one call of git that asks nobody and shows the token to that host alone.

    The token is neither an argument, which any user of the machine could list, nor written to a file.
    """
    import base64  # a training has no use for these
    from urllib.parse import urlsplit

    found = {**inherited(), "GIT_TERMINAL_PROMPT": "0"}
    parts = urlsplit(url)
    if token and parts.scheme in ("http", "https"):
        n = int(found.get("GIT_CONFIG_COUNT") or 0)
        basic = base64.b64encode(f"x-access-token:{token}".encode()).decode()
        found["GIT_CONFIG_COUNT"] = str(n + 1)
        found[f"GIT_CONFIG_KEY_{n}"] = f"http.{parts.scheme}://{parts.netloc}/.extraHeader"
        found[f"GIT_CONFIG_VALUE_{n}"] = f"Authorization: Basic {basic}"
    return found


def forget_login() -> None:
    """Remove variables of the login session: processes that outlive it must not depend on them."""
    os.environ.pop("XDG_RUNTIME_DIR", None)


def adopt(variables: Mapping[str, str]) -> None:
    """Set these for this process and every process it starts."""
    os.environ.update(variables)


def credentials(scheme: str) -> dict[str, str]:
    """Variables by which a bucket of this kind is reached."""
    kinds = {"s3": ("AWS_",), "gs": ("GOOGLE_", "STORAGE_EMULATOR_HOST"), "az": ("AZURE_",)}
    begins = kinds.get(scheme, ())
    return {name: value for name, value in os.environ.items() if begins and name.startswith(begins)}


def named(names: Iterable[str]) -> list[str]:
    """Names of these variables that are set; never their values."""
    return [name for name in names if os.environ.get(name)]


def google_key_file() -> Path | None:
    """The file with Google's credentials that the environment names."""
    google_application_credentials = os.environ.get("GOOGLE_APPLICATION_CREDENTIALS")
    return _path(google_application_credentials).expanduser() if google_application_credentials else None


def google_login_file() -> Path:
    """Where `gcloud auth application-default login` leaves a person's."""
    folder = os.environ.get("CLOUDSDK_CONFIG")
    base = _path(folder) if folder else _home() / ".config" / "gcloud"
    return base / "application_default_credentials.json"


def amazon_profiles() -> Path:
    """Where Amazon's own tools keep keys."""
    aws_shared_credentials_file = os.environ.get("AWS_SHARED_CREDENTIALS_FILE")
    return (
        _path(aws_shared_credentials_file).expanduser()
        if aws_shared_credentials_file
        else _home() / ".aws" / "credentials"
    )


def gcs_emulator() -> str | None:
    """Where Google's storage clients are told to go instead of the real service."""
    return os.environ.get("STORAGE_EMULATOR_HOST")


def metadata_server() -> str | None:
    """An emulated metadata server, which gives out tokens."""
    return os.environ.get("GCE_METADATA_HOST")


def cloud_endpoint() -> str | None:
    """Where Compute Engine's API is, if not at Google: an emulator's base URL."""
    return os.environ.get(CLOUD_ENDPOINT)


def kubeconfigs() -> list[Path]:
    """Where clusters are written down, as kubectl looks for it."""
    paths = [_path(part).expanduser() for part in os.environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    return paths or [_home() / ".kube" / "config"]


def cloud_project() -> str | None:
    """The Google Cloud project that the environment names."""
    return os.environ.get("GOOGLE_CLOUD_PROJECT") or os.environ.get("CLOUDSDK_CORE_PROJECT")


def checkpoint_dir() -> str | None:
    """The checkpoint folder of the run this process belongs to."""
    return os.environ.get(CHECKPOINT_DIR)


def drill_every() -> float:
    return float(os.environ.get(DRILL_EVERY) or 10.0)


def drill_record() -> Path | None:
    """The file in which this process, if it is one of a drill, writes down what it carries."""
    folder = os.environ.get(DRILL)
    if not folder:
        return None
    attempt, rank = os.environ.get(ATTEMPT, "0"), os.environ.get("RANK", "0")
    return _path(folder) / f"{attempt}-{rank}-{os.getpid()}.jsonl"


def run_dir() -> Path | None:
    """The folder through which a worker speaks with this process; None: no worker started it."""
    given = os.environ.get(RUN_DIR)
    return _path(given) if given else None


def handed_run() -> tuple[str, str, int]:
    """(run, sweep, attempt) that a worker gave to this process."""
    attempt = os.environ.get(ATTEMPT, "")
    return os.environ.get(RUN, ""), os.environ.get(SWEEP, ""), int(attempt) if attempt.isdigit() else 0


def rank() -> tuple[int, int]:
    """(rank, ranks in all) of this process, as torchrun and its kin tell it."""
    found = [os.environ.get(name, "") for name in ("RANK", "WORLD_SIZE")]
    if not all(text.isdigit() for text in found) or int(found[1]) < 1:
        return 0, 1
    return int(found[0]), int(found[1])


def local_rank() -> int:
    """Rank of this process among those of its node."""
    found = os.environ.get("LOCAL_RANK", "")
    return int(found) if found.isdigit() else 0


def launcher() -> int | None:
    """Number of the process that started this one as a rank; None: nobody did."""
    given = os.environ.get(LAUNCHER, "")
    return int(given) if given.isdigit() else None


def devices() -> int | None:
    """How many devices a training counts here; None: as many GPUs as are visible."""
    given = os.environ.get(DEVICES, "").strip()
    if given and not (given.isdigit() and int(given) > 0):
        raise UsageError(f"{DEVICES}={given} is not a number of devices", hint="2, or leave it out")
    return int(given) if given else None


def make_cuda_repeatable() -> None:
    """Before CUDA begins: its matrix products come out the same every time."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")


def make_compiler_repeatable(wanted: bool) -> None:
    """Before torch's compiler is imported, here or by its processes: whether what it makes is repeatable."""
    os.environ["TORCHINDUCTOR_DETERMINISTIC"] = "1" if wanted else "0"


def elastic() -> bool:
    """Whether the run may go on with another number of processes than its checkpoint has."""
    return os.environ.get(ELASTIC) == "1"


def board() -> tuple[str, int, str] | None:
    """(address, port, secret) where the ranks of several machines agree; None where they are on one."""
    address, _, port = os.environ.get(BOARD, "").rpartition(":")
    return (address, int(port), os.environ.get(BOARD_SECRET, "")) if port.isdigit() else None


def ports() -> tuple[int, int] | None:
    """The first and the last port that may be used on this machine; None: any."""
    given = os.environ.get(PORTS, "")
    first, _, last = given.partition("-")
    last = last or first
    if not given:
        return None
    if not (first.isdigit() and last.isdigit() and 0 < int(first) <= int(last) < 1 << 16):
        raise UsageError(f"{PORTS}={given!r} is not a range of ports", hint="FIRST-LAST, like 20000-20100")
    return int(first), int(last)


def ports_given() -> dict[str, str]:
    """The same, for workers elsewhere; UsageError for what is not a range of ports."""
    return {PORTS: os.environ[PORTS]} if ports() else {}


def address() -> str:
    """Address by which other machines reach this one, as its platform told it; '' if it did not."""
    return os.environ.get(ADDRESS, "")


def launch() -> str:
    """Name that the ranks of one launch share."""
    names = ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT")
    return " ".join(os.environ.get(name, "") for name in names)


@contextmanager
def without_plugins() -> Iterator[None]:
    """For what is done inside, pydantic looks for no plugins: among some hundred packages that takes longer
    than reading a file, and hostler's models are to be checked by hostler alone."""
    plugins = "PYDANTIC_DISABLE_PLUGINS"
    before = os.environ.get(plugins)
    os.environ[plugins] = "__all__"
    try:
        yield
    finally:
        os.environ.pop(plugins)
        os.environ.update({plugins: before} if before is not None else {})
