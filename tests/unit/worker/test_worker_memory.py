from __future__ import annotations

from pathlib import Path

from hostler.worker.claim import memory


def group(groups: Path, place: str, name: str, limit: str) -> None:
    (groups / place).mkdir(parents=True, exist_ok=True)
    (groups / place / name).write_text(f"{limit}\n")


def test_container_offers_its_limit_and_not_the_whole_machine(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.write_text("0::/\n")
    group(tmp_path / "groups", "", "memory.max", "1048576")
    assert memory.allowed(tmp_path / "groups", own) == 1 << 20


def test_the_closest_limit_of_all_groups_around_a_process_counts(tmp_path: Path) -> None:
    own, groups = tmp_path / "own", tmp_path / "groups"
    own.write_text("0::/slurm/job_1/step_0\n")
    group(groups, "slurm/job_1/step_0", "memory.max", "max")
    group(groups, "slurm/job_1", "memory.max", "2097152")
    group(groups, "slurm", "memory.max", "4194304")
    assert memory.allowed(groups, own) == 2 << 20


def test_the_older_interface_of_the_kernel_is_read_too(tmp_path: Path) -> None:
    own, groups = tmp_path / "own", tmp_path / "groups"
    own.write_text("5:cpu,cpuacct:/pod\n4:memory:/kubepods/pod\n")
    group(groups / "memory", "", "memory.limit_in_bytes", "3145728")  # all that a container sees of its own
    group(groups / "cpu", "pod", "memory.limit_in_bytes", "1")
    assert memory.allowed(groups, own) == 3 << 20


def test_without_a_limit_it_is_the_memory_of_the_machine(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.write_text("0::/\n4:memory:/\n")
    group(tmp_path / "groups", "memory", "memory.limit_in_bytes", str(1 << 62))
    whole = memory.allowed(tmp_path, tmp_path / "none")
    assert memory.allowed(tmp_path / "groups", own) == whole > 0
