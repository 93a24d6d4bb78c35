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


def test_free_memory_is_the_least_that_machine_and_groups_have(tmp_path: Path) -> None:
    own, groups, facts = tmp_path / "own", tmp_path / "groups", tmp_path / "meminfo"
    facts.write_text("MemTotal: 9000 kB\nMemFree: 10 kB\nMemAvailable: 5000 kB\n")
    own.write_text("0::/job\n")
    assert memory.available(groups, own, facts) == 5000 * 1024
    group(groups, "job", "memory.max", "3000000")
    group(groups, "job", "memory.current", "2000000")
    group(groups, "job", "memory.stat", "anon 7\ninactive_file 500000")
    assert memory.available(groups, own, facts) == 1_500_000
    assert memory.available(groups, own, tmp_path / "none") == 1_500_000
    own.write_text("")
    assert memory.available(groups, own, tmp_path / "none") is None


def test_workers_under_one_limit_share_its_memory(tmp_path: Path) -> None:
    own, groups = tmp_path / "own", tmp_path / "groups"
    own.write_text("0::/user/terminal\n")
    assert memory.binding(groups, own) == ""
    group(groups, "user", "memory.max", "4000")
    group(groups, "user/terminal", "memory.max", "max")
    assert memory.binding(groups, own) == str(groups / "user")


def test_promises_of_a_worker_that_is_gone_are_forgotten(tmp_path: Path) -> None:
    mine, other = memory.Promises(tmp_path), memory.Promises(tmp_path)
    mine.write(5)
    other.write(7)
    assert (mine.others(), other.others()) == (7, 5)
    other.write(0)
    assert mine.others() == 0
    other.write(9)
    other.close()
    assert mine.others() == 0
    (tmp_path / "left").write_text("                  99")
    assert mine.others() == 0 and not (tmp_path / "left").exists()
