from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, ClassVar

import pytest

from hostler.backends.project_file import kinds, load_project, schemas
from hostler.errors import HostlerError, MissingError, NewerFormatError, SpecError
from hostler.spec.files import parse, yaml12
from hostler.spec.job import Checkpointing, Limits, MetricSource, PythonEnv, Resources
from hostler.spec.project import DataEntry, Fleet, GitSource, Project
from hostler.spec.tracking import Tracking

EVERY_KEY = """\
name: cifar
command: python train.py                  # parameters follow as --key value; or {key} in the command
resume: --resume {checkpoint_dir}/last.pt # added from the second attempt on
setup: bash setup.sh                      # once per machine and content
python: {requirements: requirements.txt}
env: {OMP_NUM_THREADS: 4}                 # variables
secrets: [WANDB_API_KEY]
store: gs://my-bucket/cifar               # default: the folder .hostler
metric: val/accuracy
goal: max
resources: {gpus: 1, cpus: 4, memory: 16GB, nodes: 1}
limits: {time: 6h, hang: 30m, start: 20m, failures: 5}
checkpoint: {every: 5m, keep: 2}
retries: 2
data: {train: data/, imagenet: /datasets/imagenet, census: gs://b/census/}
outputs: [results/, model.pkl]
trackers: [tensorboard]
tags: [baseline]
fleet: desk                               # the default for --on
fleets:
  desk: {backend: local, workers: 2}
  lab:  {backend: ssh, hosts: [gpu1, me@gpu2:2222]}
  tau:  {backend: slurm, login: me@login, partition: killable, workers: 32, time: 1d}
  burst: {backend: gce, project: my-project, zones: [us-central1-a, us-central1-b], machine: g2-standard-8,
          spot: true, workers: 8, max_cost: 50, max_hours: 12}
  gke:  {backend: kubernetes, namespace: train, image: "python:3.11", workers: 4}
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def parsed(text: str, name: str = "hostler.yaml") -> Project:
    Path(name).write_text(text, encoding="utf-8")
    return load_project(Path(name))


def refused(text: str) -> str:
    with pytest.raises(SpecError) as caught:
        parsed(text)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_every_key_of_the_documented_file_is_read(here: Path) -> None:
    project = parsed(EVERY_KEY)
    assert project == Project(
        name="cifar",
        root=here,
        store="gs://my-bucket/cifar",
        command=("python", "train.py"),
        resume=("--resume", "{checkpoint_dir}/last.pt"),
        resume_whole=False,
        setup=("bash", "setup.sh"),
        python=PythonEnv(requirements="requirements.txt"),
        env={"OMP_NUM_THREADS": "4"},
        secrets=("WANDB_API_KEY",),
        metric="val/accuracy",
        goal="max",
        resources=Resources(gpus=1, cpus=4, memory=16 * 10**9, nodes=1),
        limits=Limits(time=21600, hang=1800, start=1200, failures=5),
        checkpoint=Checkpointing(every=300, keep=2),
        retries=2,
        retries_given=True,
        data={
            "train": DataEntry("train", path="data/"),
            "imagenet": DataEntry("imagenet", path="/datasets/imagenet"),
            "census": DataEntry("census", url="gs://b/census/"),
        },
        outputs=("results/", "model.pkl"),
        trackers=(Tracking("tensorboard"),),
        tags=("baseline",),
        fleet="desk",
        fleets={
            "desk": Fleet("desk", "local", workers=2),
            "lab": Fleet("lab", "ssh", options={"hosts": ("gpu1", "me@gpu2:2222")}),
            "tau": Fleet(
                "tau", "slurm", 32, options={"login": "me@login", "partition": "killable", "time": 86400.0}
            ),
            "burst": Fleet(
                "burst",
                "gce",
                workers=8,
                max_cost=50,
                max_hours=12,
                options={
                    "project": "my-project",
                    "zones": ("us-central1-a", "us-central1-b"),
                    "machine": "g2-standard-8",
                    "spot": True,
                },
            ),
            "gke": Fleet("gke", "kubernetes", 4, options={"namespace": "train", "image": "python:3.11"}),
        },
    )


def test_every_fleet_key_of_every_backend_is_known() -> None:
    shared = "workers: 2, runs_per_worker: 3, slots: 4, cache: /c, price: 1.5, max_cost: 5, max_hours: 2"
    own = {
        "local": "",
        "ssh": "hosts: a, user: me, port: 22, key: ~/.ssh/k, jump: j@h",
        "slurm": "login: l, partition: p, account: a, qos: q, constraint: c, time: 1d, gres: 'gpu:1', "
        "header: ['#SBATCH --x'], script: s.sh",
        "gce": "project: p, zones: [a], exclude_zones: [b], machine: m, gpu: 'T4:1', spot: prefer, image: i, "
        "family: f, disk: 100GB, network: n, external_ip: false, service_account: s, deadline: 2h",
        "kubernetes": "context: c, namespace: n, image: i, gpus: 1, node_selector: {a: 1}, "
        "tolerations: [{key: k}], service_account: s, pull_secret: p, queue: q, volumes: {/d: claim}",
    }
    text = "fleets:\n" + "".join(
        f"  {name}: {{backend: {name}, {shared}, resources: {{gpus: 0.5}}, {keys}}}\n"
        for name, keys in own.items()
    )
    fleets = parsed(text).fleets
    for name, keys in own.items():
        fleet = fleets[name]
        assert (fleet.workers, fleet.runs_per_worker, fleet.slots, fleet.cache) == (2, 3, 4, "/c")
        assert (fleet.price, fleet.max_cost, fleet.max_hours) == (1.5, 5, 2)
        assert fleet.resources == Resources(gpus=0.5)
        assert len(fleet.options) == re.sub("{.*?}", "", keys).count(": ")
    assert fleets["ssh"].options["hosts"] == ("a",)
    assert fleets["slurm"].options["header"] == ("#SBATCH --x",)
    assert (fleets["gce"].options["disk"], fleets["gce"].options["spot"]) == (10**11, "prefer")


def test_an_empty_file_is_all_defaults(here: Path) -> None:
    assert parsed("") == Project(name=here.name, root=here, store=str(here / ".hostler"))
    assert parsed("setup:\nlimits: {time: }\n").limits == Limits()


def test_our_own_keys(here: Path) -> None:
    project = parsed(
        "style: equals\nmetrics: {pattern: 'loss=(?P<loss>[0-9.]+)'}\ncache: /scratch\npriority: -3\n"
        "git: https://me@host/a/b.git@feature/x\ngit_token: TOKEN\n"
        "checkpoint: {every: 90, keep: 1, keep_every: 6h}\n"
        "data: {prep: {run: make data, out: built}, u: {url: 's3://b/k'}}\nstore: runs\n"
    )
    assert (project.style, project.cache, project.priority) == ("equals", "/scratch", -3)
    assert project.metrics == MetricSource(json_lines=False, pattern="loss=(?P<loss>[0-9.]+)")
    assert project.git == GitSource("https://me@host/a/b.git", "feature/x", "TOKEN")
    assert project.checkpoint == Checkpointing(every=90, keep=1, keep_every=21600)
    assert project.data["prep"] == DataEntry("prep", run=("make", "data"), out="built")
    assert project.data["u"] == DataEntry("u", url="s3://b/k")
    assert project.store == str(here / "runs")


@pytest.mark.parametrize(
    ("git", "source"),
    [
        ("git@host:a/b.git", GitSource("git@host:a/b.git")),
        ("git@host:a/b.git@v1", GitSource("git@host:a/b.git", "v1")),
        ("https://host/a/b", GitSource("https://host/a/b")),
        ("https://me@host/a/b", GitSource("https://me@host/a/b")),
        ("ssh://git@host:22/a/b@main", GitSource("ssh://git@host:22/a/b", "main")),
        ("/srv/repo@main", GitSource("/srv/repo", "main")),
        ("../repo", GitSource("../repo")),
    ],
)
def test_git_addresses_and_refs_are_told_apart(git: str, source: GitSource) -> None:
    assert parsed(f"git: {git}").git == source


@pytest.mark.parametrize(
    ("resume", "whole"),
    [
        ("--resume {checkpoint_dir}", False),
        ("-r", False),
        ("{checkpoint_dir}/last.pt", False),
        ("resume=true", False),
        ("python go_on.py {checkpoint_dir}", True),
        ("./go-on --from=x", True),
    ],
)
def test_resume_is_more_arguments_or_a_whole_command(resume: str, whole: bool) -> None:
    assert parsed(f"resume: '{resume}'").resume_whole is whole


@pytest.mark.parametrize(
    ("text", "first", "others"),
    [
        ("resume: --resume a.pt", ("--resume", "a.pt"), ()),
        ("resume: [--resume, a.pt]", ("--resume", "a.pt"), ()),
        ("resume: [--resume, a b.pt]", ("--resume", "a b.pt"), ()),
        ("resume: [--resume a.pt, --init b.pt]", ("--resume", "a.pt"), (("--init", "b.pt"),)),
        ("resume: [[ckpt=a.pt], [ckpt=b.pt]]", ("ckpt=a.pt",), (("ckpt=b.pt",),)),
        ("resume: [--resume a.pt, [ckpt=b.pt]]", ("--resume", "a.pt"), (("ckpt=b.pt",),)),
        (
            "resume: ['--resume={checkpoint_dir}/a.pt', '--resume={checkpoint_dir}/b.pt']",
            ("--resume={checkpoint_dir}/a.pt",),
            (("--resume={checkpoint_dir}/b.pt",),),
        ),
        (
            "resume: ['--model={checkpoint_dir}/m.pt', '--optim={checkpoint_dir}/o.pt']",
            ("--model={checkpoint_dir}/m.pt", "--optim={checkpoint_dir}/o.pt"),
            (),
        ),
    ],
)
def test_resume_may_be_a_list_of_alternatives(
    text: str, first: tuple[str, ...], others: tuple[tuple[str, ...], ...]
) -> None:
    found = parsed(text)
    assert (found.resume, found.resume_else) == (first, others)


def test_command_splits_as_posix_and_lists_stay() -> None:
    assert parsed("""command: python 'my train.py' --x "a b" *.py $HOME""").command == (
        "python",
        "my train.py",
        "--x",
        "a b",
        "*.py",
        "$HOME",
    )
    assert parsed("command: [python, 'a b', '&&', 1.10, on]").command == ("python", "a b", "&&", "1.10", "on")


def test_text_keys_keep_numbers_as_they_were_written() -> None:
    project = parsed("name: 2024\ntags: [1.10, no]\nenv: {A: 007, B: true, C: 1e-3, D: ''}")
    assert project.name == "2024"
    assert project.tags == ("1.10", "no")
    assert project.env == {"A": "007", "B": "true", "C": "1e-3", "D": ""}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "\n\n\n\n\n\nlimits: {time: abc}",
            "hostler.yaml:7: limits.time: 'abc' is not a duration (like 90s, 30m, 6h, 1d)",
        ),
        ("name: x\ncomand: y", "hostler.yaml:2: no such key 'comand' (did you mean 'command'?)"),
        (
            "fleets:\n  lab:\n    backend: ssh\n    hots: [a]",
            "hostler.yaml:4: fleets.lab: no such key 'hots' (did you mean 'hosts'?)",
        ),
        (
            "limits: {\n memory: 3}",
            "hostler.yaml:2: limits: no such key 'memory' (keys: time, hang, start, failures)",
        ),
        ("goal: maximum", "hostler.yaml:1: goal: 'maximum' is not 'max' or 'min' (did you mean 'max'?)"),
        (
            "style: flag",
            "hostler.yaml:1: style: 'flag' is not 'flags', 'equals', 'hydra', 'json', 'env' or 'none'",
        ),
        (
            "fleets: {x: {backend: slrum}}",
            "hostler.yaml:1: fleets.x.backend: 'slrum' is not a backend (did you mean",
        ),
        ("fleets: {x: {workers: 2}}", "hostler.yaml:1: fleets.x: backend is missing"),
        ("fleets: {x: }", "hostler.yaml:1: fleets.x: has no value"),
        ("fleets:\n  x: {backend: ssh}", "hostler.yaml:2: fleets.x.hosts: is missing"),
        ("fleets: {x: {backend: ssh, hosts: []}}", "hostler.yaml:1: fleets.x.hosts: is empty"),
        ("fleets: {a b: {backend: local}}", "hostler.yaml:1: fleets.a b: 'a b' is not a name"),
        (
            "fleets: {x: {backend: gce,\n spot: maybe}}",
            "hostler.yaml:2: fleets.x.spot: 'maybe' is not true, false or",
        ),
        (
            "fleets: {x: {backend: gce, disk: 100}}",
            "hostler.yaml:1: fleets.x.disk: 100 is less than any disk",
        ),
        ("fleets: {x: {backend: local, workers: 0}}", "hostler.yaml:1: fleets.x.workers: must be at least 1"),
        (
            "fleets: {x: {backend: ssh, hosts: h, port: 99999}}",
            "hostler.yaml:1: fleets.x.port: must be at most 65535",
        ),
        (
            "fleet: desc\nfleets: {desk: {backend: local}}",
            "hostler.yaml:1: fleet: no fleet named 'desc' (did you",
        ),
        ("metric: 3", "hostler.yaml:1: metric: 3 is not text (put it in quotes)"),
        ("retries: two", "hostler.yaml:1: retries: 'two' is not a whole number"),
        ("retries: 1.5", "hostler.yaml:1: retries: 1.5 is not a whole number"),
        ("retries: true", "hostler.yaml:1: retries: True is not a whole number"),
        ("retries: -1", "hostler.yaml:1: retries: must be at least 0"),
        ("resources: {gpus: many}", "hostler.yaml:1: resources.gpus: 'many' is not a number"),
        ("resources: {gpus: true}", "hostler.yaml:1: resources.gpus: True is not a number"),
        ("resources: {gpus: .inf}", "hostler.yaml:1: resources.gpus: inf is not a number"),
        (
            "resources: {memory: 16XB}",
            "hostler.yaml:1: resources.memory: '16XB' is not a size (like 16GB, 512MiB)",
        ),
        ("resources: 3", "hostler.yaml:1: resources: 3 is not a table (key: value)"),
        ("limits: {time: 0}", "hostler.yaml:1: limits.time: must be more than 0"),
        ("tags: {a: b}", "hostler.yaml:1: tags: {'a': 'b'} is not a list"),
        ("outputs: [/etc]", "hostler.yaml:1: outputs[0]: '/etc' is not a path inside the project"),
        ("outputs: ~/out", "hostler.yaml:1: outputs: '~/out' is not a path inside the project"),
        ("outputs: [a, b/../../c]", "hostler.yaml:1: outputs[1]: 'b/../../c' is not a path inside the"),
        ("outputs: .", "hostler.yaml:1: outputs: '.' is not a path inside the project"),
        ("outputs:\n  - a\n  - 3", "hostler.yaml:3: outputs[1]: 3 is not text (put it in quotes)"),
        (
            "outputs: nonsense",
            "hostler.yaml:1: outputs: 'nonsense' is neither none nor a list of paths",
        ),
        ("outputs: {a: b}", "hostler.yaml:1: outputs: {'a': 'b'} is not a list"),
        (
            "data: {a: {path: x, at: ../../y}}",
            "hostler.yaml:1: data.a.at: '../../y' is not a place in the",
        ),
        (
            "data: {a: {path: x, at: /y}}",
            "hostler.yaml:1: data.a.at: '/y' is not a place in the run's",
        ),
        (
            "data: {a: {path: x, at: .}}",
            "hostler.yaml:1: data.a.at: '.' is not a place in the run's",
        ),
        ("data: {a: {path: x, at: ../work/y}}", "hostler.yaml:1: data.a.at: '../work/y' is the working fold"),
        ("secrets: [A B]", "hostler.yaml:1: secrets[0]: 'A B' is not the name of a variable"),
        ("env: {1A: x}", "hostler.yaml:1: env.1A: '1A' is not the name of a variable"),
        ("env: {A: [1]}", "hostler.yaml:1: env.A: ['1'] is not text"),
        ("env: {A: }", "hostler.yaml:1: env.A: has no value"),
        ("python: {venv: a, exe: b}", "hostler.yaml:1: python: exe, venv cannot be combined"),
        ("command: ''", "hostler.yaml:1: command: the command is empty"),
        ('command: "a \'b"', "hostler.yaml:1: command: No closing quotation"),
        ("setup: cd x && make", "hostler.yaml:1: setup: '&&' needs a shell"),
        ("data: {a/b: x}", "hostler.yaml:1: data.a/b: 'a/b' is not a name"),
        ("data: {a: ftp://x/y}", "hostler.yaml:1: data.a.url: 'ftp://x/y' is not an address"),
        ("data: {a: {run: make}}", "hostler.yaml:1: data.a: run and out go together"),
        ("data: {a: {path: x, url: 's3://b'}}", "hostler.yaml:1: data.a: give a path, a url, or run and out"),
        ("metrics: {pattern: '('}", "hostler.yaml:1: metrics: '(' is not a regular expression"),
        (
            "metrics: {pattern: 'a(?P<step>b)'}",
            "hostler.yaml:1: metrics: 'a(?P<step>b)' has no group named like a metric",
        ),
        ("metrics: csv", "hostler.yaml:1: metrics: 'csv' is not auto, json, none or {pattern: REGEX}"),
        ("git: nonsense", "hostler.yaml:1: git: 'nonsense' is not a git address"),
        ("name: x\ngit_token: T", "hostler.yaml:2: git_token: needs git:, which is missing"),
        ("- a", "hostler.yaml:1: not a table (key: value)"),
        ("a: 1\na: 2", "hostler.yaml:2: 'a' is given twice, first on line 1"),
        ("name: ''", "hostler.yaml:1: name: is empty"),
    ],
)
def test_mistake_is_one_line_with_place_and_fix(text: str, line: str) -> None:
    assert refused(text).startswith(line)


def test_the_first_mistake_in_the_file_is_the_one_named() -> None:
    assert refused("name: ok\nretries: x\nmetric: 3\n").startswith("hostler.yaml:2: ")


@pytest.mark.parametrize("key", ["format", "version"])
def test_a_newer_file_is_left_alone_whatever_else_it_says(key: str) -> None:
    with pytest.raises(NewerFormatError, match=r"hostler.yaml:2: .* is newer"):
        parsed(f"from_the_future: 1\n{key}: 2\n")
    assert parsed(f"{key}: 1\nname: x\n").name == "x"


def test_a_json_file_is_read_too() -> None:
    project = parsed('{"name": "x", "env": {"N": 4}, "limits": {"time": "6h"}}', "hostler.json")
    assert (project.name, project.env, project.limits.time) == ("x", {"N": "4"}, 21600)
    with pytest.raises(SpecError, match=r"hostler.json:2: no such key 'nam' \(did you mean 'name'"):
        parsed('{\n"nam": "x"}', "hostler.json")


def test_files_that_cannot_be_read_say_so(here: Path) -> None:
    with pytest.raises(MissingError, match=r"hostler\.yaml does not exist"):
        load_project(Path("hostler.yaml"))
    Path("hostler.yaml").write_bytes(b"name: x\ntags: [\xff]\n")
    with pytest.raises(SpecError, match=r"hostler.yaml:2: not UTF-8"):
        load_project(Path("hostler.yaml"))
    Path("folder").mkdir()
    with pytest.raises(HostlerError, match="cannot be read"):
        load_project(Path("folder"))


def test_a_folder_with_any_name_is_a_root(here: Path) -> None:
    folder = here / 'it\'s "a"; echo x\nfolder'
    folder.mkdir()
    (folder / "hostler.yaml").write_text("command: python train.py")
    project = load_project(folder / "hostler.yaml")
    assert (project.root, project.name) == (folder, folder.name)
    assert project.store == str(folder / ".hostler")


def test_the_schema_names_every_key_and_allows_no_other() -> None:
    found = json.loads(json.dumps(schemas()["hostler.yaml"]))
    assert {"command", "fleets", "limits", "style"} <= set(found["properties"])
    assert found["additionalProperties"] is False
    assert found["title"] == "hostler.yaml"


@pytest.mark.parametrize("kind", ["venv", "exe", "conda_env"])
def test_requirements_beside_a_python_that_exists_are_allowed(kind: str) -> None:
    found = parsed(f"python: {{requirements: r.txt, {kind}: /x}}").python
    assert found == PythonEnv(requirements="r.txt", **{kind: "/x"})


@pytest.mark.parametrize(
    "two", ["venv: /x, exe: /y", "requirements: r.txt, conda: e.yml", "conda: e.yml, venv: /x"]
)
def test_two_pythons_are_refused(two: str) -> None:
    with pytest.raises(SpecError, match="cannot be combined"):
        parsed(f"python: {{{two}}}")


def test_several_nodes_and_how_they_are_told_of_each_other(here: Path) -> None:
    (here / "hostler.yaml").write_text(
        "distributed: jax\nresources: {nodes: 4, procs_per_node: 2, min_nodes: 2}\n"
    )
    project = load_project(here / "hostler.yaml")
    assert project.distributed == "jax" and project.resources == Resources(
        nodes=4, procs_per_node=2, min_nodes=2
    )
    assert project.resources.fewest == 2 and Resources(nodes=4).fewest == 4


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("distributed: horovod", "distributed"),
        ("resources: {nodes: 2, min_nodes: 3}", "min_nodes"),
        ("resources: {nodes: 0}", "nodes"),
        ("resources: {nodse: 2}", "did you mean nodes"),
    ],
)
def test_a_mistake_about_several_nodes_is_named(here: Path, text: str, said: str) -> None:
    (here / "hostler.yaml").write_text(text + "\n")
    with pytest.raises(SpecError) as error:
        load_project(here / "hostler.yaml")
    assert said in str(error.value).replace("`", "").replace("'", "") and "hostler.yaml:1" in str(error.value)


@pytest.mark.parametrize(
    ("text", "outputs", "collect"),
    [
        ("", (), True),
        ("outputs: none", (), False),
        ("outputs: []", (), False),
        ("outputs: results/", ("results/",), True),
        ("outputs: [none]", ("none",), True),
    ],
)
def test_outputs_none_turns_collecting_off(text: str, outputs: tuple[str, ...], collect: bool) -> None:
    found = parsed(text)
    assert (found.outputs, found.collect) == (outputs, collect)


@pytest.mark.parametrize(
    ("at", "place"), [("data/x/", "data/x"), ("../data", "../data"), ("a/../b", "b"), ("./d", "d")]
)
def test_a_place_of_data_is_read_in_its_shortest_form(at: str, place: str) -> None:
    assert parsed(f"data: {{a: {{path: x, at: {at}}}}}").data["a"].at == place


class Asked(dict[str, Any]):
    """Keys of fleets by backend, and the backends that were asked for."""

    asked: ClassVar[list[str]] = []

    def __getitem__(self, name: str) -> Any:
        self.asked.append(name)
        return super().__getitem__(name)


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("name: a", ["local", "ssh"]),
        ("fleets: {a: {backend: slurm}}", ["local", "ssh", "slurm"]),
        ("fleets: {a: {backend: gce}, b: {backend: ssh}}", ["local", "ssh", "gce"]),
    ],
)
def test_reading_a_file_loads_fleets_that_it_names(text: str, asked: list[str]) -> None:
    Asked.asked.clear()
    parse.named(yaml12.load(text, "hostler.yaml"), Asked(kinds()))
    assert Asked.asked == asked


@pytest.mark.parametrize(
    "text", ["fleets: {a: {backend: slrum}}", "fleets: {a: 3}", "fleets: [a]", "fleets: 1"]
)
def test_fleet_of_no_known_backend_is_judged_by_all(text: str) -> None:
    every = kinds()
    assert parse.named(yaml12.load(text, "hostler.yaml"), every) is every
