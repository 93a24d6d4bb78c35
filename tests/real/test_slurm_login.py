"""Slurm from a laptop that only reaches the login node by ssh and has no file in common with it."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import servers
from fleet_world import FleetWorld, bucket
from slurm_cluster import Cluster, cluster
from sshhosts import Hosts

pytestmark = [pytest.mark.real, pytest.mark.needs("sshd"), pytest.mark.needs("sbatch")]

GRID = "name: grid\ncommand: python steps.py\nmetric: value\nparameters:\n  lr: [1, 2]\n  steps: [2, 3]\n"


class Desk(FleetWorld):
    """A laptop whose project has a Slurm fleet with a login node."""

    def settle(self, login: str = "n1", store: str | None = None, **fleet: object) -> None:
        more = "".join(f", {key}: {value}" for key, value in fleet.items())
        lines = ["name: walk", "style: json", f"store: {store or self.url}", "fleet: tau"]
        lines += [f"fleets: {{tau: {{backend: slurm, login: {login}, workers: 2{more}}}}}"]
        self.write("hostler.yaml", "\n".join(lines) + "\n")
        self.write("grid.yaml", GRID)


@pytest.fixture
def site(hosts: Hosts) -> Iterator[Cluster]:
    """A cluster inside the machine n1: what its nodes see is what n1 sees, and nobody else reaches it."""
    folder = Path(tempfile.mkdtemp(prefix="hslurm", dir="/var/tmp"))
    first = hosts["n1"].root.parent.name
    within = ("nsenter", f"--target={first}", "--net", "--mount")
    try:
        with cluster(folder, nodes=2, cpus=2, within=within) as made:
            hosts["n1"].home.joinpath(".bashrc").write_text(f"export SLURM_CONF={folder}/etc/slurm.conf\n")
            yield made
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def desk(tmp_path: Path, hosts: Hosts) -> Iterator[Desk]:
    made = Desk(tmp_path / "world", hosts, f"ssh://n1/~/{tmp_path.name}")
    made.settle()
    yield made
    made.hang_up()
    made.close()


def rows(desk: Desk) -> list[dict[str, object]]:
    code = "import hostler, sys; print(hostler.frame(sys.argv[1], 'grid').to_json(orient='records'))"
    return desk.python(code, desk.url)


def test_sweep_from_a_laptop_ends_as_a_data_frame(desk: Desk, site: Cluster) -> None:
    desk.settle(header="['module() { :; }', 'module load x']", time="10m")
    assert "has the store's folder" in desk.run("doctor").out
    plan = desk.run("sweep", "--dry-run", "grid.yaml")
    home = f"/root/{desk.url.rpartition('/')[2]}"
    assert plan.code == 0 and "--array=0-3%2" in plan.out, plan.err
    assert (
        f"-m hostler.worker {home} --host slurm" in plan.out
        and f"--output={home}/fleets/tau/logs" in plan.out
    )
    answer = desk.run("sweep", "-y", "--wait", "grid.yaml", timeout=120)
    assert answer.code == 0, answer.err + site.tail()
    found = rows(desk)
    assert [row["state"] for row in found] == ["done"] * 4
    assert sorted(row["value"] for row in found) == [1.0, 2.0, 2.0, 4.0]  # type: ignore[type-var]
    logs = list((desk.hosts["n1"].home / home[6:]).glob("fleets/tau/logs/*.log"))
    assert len(logs) == 4
    site.until(lambda: not desk.hosts["n1"].pids("hostler.worker "), 60, "a worker is left")


def test_run_with_a_bucket_secret_is_followed_listed_and_ended(
    tmp_path: Path, hosts: Hosts, site: Cluster
) -> None:
    with bucket(hosts, tmp_path) as given:
        url = f"s3://{servers.BUCKET}/walk"
        desk = Desk(tmp_path / "world", hosts, url, **given, MY_TOKEN="t0psecret")
        desk.settle()
        with (desk.folder / "hostler.yaml").open("a") as file:
            file.write("secrets: [MY_TOKEN]\n")
        desk.write("say.py", "import os; print(len(os.environ['MY_TOKEN']))\n")
        answer = desk.run("run", "say.py", timeout=120)
        assert answer.code == 0 and "9" in answer.out, answer.err + answer.out
        assert "t0psecret" not in desk.run("run", "--dry-run", "say.py", "2").out
        site.run("scontrol", "update", "PartitionName=main", "State=DOWN")
        assert desk.run("run", "--detach", "say.py", "3").code == 0
        site.until(lambda: "PENDING" in site.states().values(), 60, "nothing waits")
        site.until(lambda: "(PartitionDown)" in desk.run("status").out, 60, "status does not say why")
        assert "nothing of tau is left" in desk.run("down", "--now").err
        desk.hang_up()
        desk.close()


def test_what_cannot_be_is_one_line_before_anything_is_submitted(desk: Desk, hosts: Hosts) -> None:
    def refused(*said: str) -> None:
        answer = desk.run("sweep", "-y", "grid.yaml")
        assert answer.code != 0 and all(word in answer.err for word in said), answer.err
        assert "Traceback" not in answer.err

    for name in (".bashrc", ".profile"):
        (hosts["n1"].home / name).write_text("export PATH=/root/bin\n")
    (hosts["n1"].home / "bin").mkdir(exist_ok=True)
    (hosts["n1"].home / "bin" / "python3").symlink_to("/usr/bin/python3")
    refused("sbatch was not found on n1", "ssh n1 sbatch --version")
    for name in (".bashrc", ".profile"):
        (hosts["n1"].home / name).unlink()
    desk.settle(store=str(desk.folder / "here"))
    refused("n1 cannot see the store's folder", "ssh://HOST/path", "s3://")
    desk.settle(login="nobody@n2")
    refused("nobody@n2 refused the login")
    desk.settle(login="'not a host'")
    refused("not a host")
    hosts["n2"].cut()
    desk.settle(login="n2")
    refused("n2 cannot be reached")
    hosts["n2"].join()
    desk.settle()
    assert desk.states() == {}


FROM_PYTHON = """
import json, hostler
if __name__ == "__main__":
    found = hostler.sweep("python steps.py", {"lr": [1, 2], "steps": 2}, name="mine", style="json")
    print(json.dumps([row.state for row in found.wait(120).rows()]))
"""


def test_a_sweep_from_python_goes_through_the_login_node(desk: Desk, site: Cluster) -> None:
    desk.write("go.py", FROM_PYTHON)
    assert json.loads(desk.program("go.py")) == ["done", "done"], site.tail()
