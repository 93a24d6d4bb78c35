"""What a person reads after three runs: one that was done, one that failed, one that was tried twice."""

from __future__ import annotations

import json
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli_world import World, eventually
from pseudo_terminal import on_terminal

ODD = 'my "odd" project; it\'s ours'


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("reading"), ODD)
    assert made.run("run", "--name", "good", "--tag", "base", "train.py", "--lr", "0.5").code == 0
    assert made.run("run", "--name", "bad", "--tag", "base", "train.py", "--fail", "boom").code == 1
    made.write("extra.py", "x = 1\n")
    assert made.run("run", "--name", "flaky", "train.py", "--flaky", "--epochs", "2").code == 0
    yield made
    made.close()


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


def test_status_as_json_is_a_list_of_runs(world: World) -> None:
    rows = {row["name"]: row for row in world.run("status", "--json").json}
    assert rows.keys() == {"good", "bad", "flaky"}
    assert {"id", "name", "sweep", "state", "params", "metrics", "attempt", "host"} <= rows["good"].keys()
    assert rows["good"]["params"] == {"lr": 0.5}
    assert rows["good"]["metrics"]["loss"] == pytest.approx(1 / 3)
    assert (rows["bad"]["state"], rows["bad"]["exit"]) == ("failed", 1)
    assert rows["flaky"]["attempt"] == 2


def test_status_in_a_pipe_is_plain_lines_under_each_other(world: World) -> None:
    answer = world.run("status")
    head, *lines = answer.out.splitlines()
    assert head.split() == ["NAME", "STATE", "lr", "fail", "flaky", "epochs", "loss", "STEP", "TIME"]
    cells = [line[: head.index("STEP") + 4].split() for line in lines]  # but for the time that each took
    assert cells == [
        ["good", "done", "0.5", "0.3333", "3"],
        ["bad", "failed:", "error", "boom", "0.3333", "3"],
        ["flaky", "done", "true", "2", "0.5", "2"],
    ]
    assert all(line[head.index("STATE") - 1] == " " for line in lines)
    assert "\x1b" not in answer.out
    assert answer.err.splitlines()[0] == "2 done, 1 failed"
    assert "bad failed: ValueError: boom (train.py:" in answer.err and "hostler retry bad" in answer.err


def test_status_on_a_terminal_is_coloured_unless_told_not_to(world: World) -> None:
    assert "\x1b[32mdone" in shown_on_terminal(world, "status")
    plain = shown_on_terminal(world, "status", NO_COLOR="1")
    assert "done" in plain and "\x1b[32m" not in plain


def test_status_narrows_to_a_sweep_a_state_or_a_tag(world: World) -> None:
    assert [row["name"] for row in world.run("status", "good", "--json").json] == ["good"]
    assert [row["name"] for row in world.run("status", "--state", "failed", "--json").json] == ["bad"]
    assert world.run("status", "--tag", "none-has-this", "--json").json == []
    assert len(world.run("status", "--tag", "base", "--json").json) == 2


def test_a_name_mistyped_gets_the_nearest_one(world: World) -> None:
    answer = world.run("status", "flakky")
    assert answer.code == 1
    assert "did you mean flaky?" in answer.err


def test_status_of_an_empty_folder_says_what_to_type(fresh: World) -> None:
    answer = fresh.run("status")
    assert answer.code == 0
    assert "no runs yet" in answer.err and "hostler run" in answer.err
    assert fresh.run("status", "--json").json == []
    assert not fresh.store.exists()


def test_show_tells_everything_of_a_failed_run(world: World) -> None:
    text = world.run("show", "bad").out
    for part in (
        "failed: error",
        "--fail boom",
        "ValueError: boom",
        "Traceback",
        "hostler retry bad",
        "base",
    ):
        assert part in text
    assert text.count("exit 1") == 3  # all attempts
    assert re.search(r"^  system/memory +[\d.]+[KMG]B ", text, re.MULTILINE)


def test_show_as_json_has_attempts_checkpoints_outputs_and_environment(world: World) -> None:
    found = world.run("show", "flaky", "--json").json
    assert [one["outcome"] for one in found["attempts"]] == ["queued", "done"]
    assert found["attempts"][0]["failure"]["message"] == "ValueError: the first time is hard (train.py:16)"
    assert found["checkpoints"][0]["size"] == 100
    assert [file["name"] for file in found["outputs"]] == ["report.txt"]
    assert found["totals"]["loss"] == {
        "last": 0.5,
        "step": 2,
        "min": 0.5,
        "min_step": 2,
        "max": 1.0,
        "max_step": 1,
    }
    assert found["environment"]["python"]["version"] == ".".join(map(str, sys.version_info[:3]))
    assert found["source"]["snapshot"]


def test_logs_parts_the_attempts_and_tail_keeps_the_end(world: World) -> None:
    out = world.run("logs", "bad").out
    assert out.count("──── attempt") == 2
    assert out.count("ValueError: boom") >= 3
    whole = out.splitlines()
    assert world.run("logs", "bad", "--tail", "2").out.splitlines()[-2:] == whole[-2:]
    only = world.run("logs", "bad", "--attempt", "1").out
    assert "──── attempt" not in only and only.count('"step": 1,') == 1


def test_logs_of_several_runs_begin_with_their_names(world: World) -> None:
    lines = world.run("logs", "good", "flaky", "--grep", '"step": 1').out.splitlines()
    assert [line.split(": ")[0] for line in lines if "────" not in line] == ["good", "flaky", "flaky"]
    rows = [json.loads(line) for line in world.run("logs", "good", "--json").out.splitlines()]
    assert rows[0]["run"] == "good" and json.loads(rows[0]["line"])["step"] == 1


def test_logs_of_an_unknown_attempt_name_those_that_exist(world: World) -> None:
    answer = world.run("logs", "bad", "--attempt", "4")
    assert answer.code == 1 and "attempts: 1, 2, 3" in answer.err
    assert "──── attempt 3 " in world.run("logs", "bad").out
    assert world.run("logs", "bad", "--grep", "(").code == 2


def test_errors_are_grouped_and_those_overcome_come_with_all(world: World) -> None:
    standing = world.run("errors", "--json").json
    assert [(group["count"], group["runs"]) for group in standing] == [(1, ["bad"])]
    everything = world.run("errors", "--all", "--json").json
    assert {(group["count"], tuple(group["runs"])) for group in everything} == {
        (3, ("bad",)),
        (1, ("flaky",)),
    }
    text = world.run("errors").out
    assert "ValueError: boom" in text and "hostler logs bad" in text


def test_diff_shows_parameters_results_and_the_changed_file(world: World) -> None:
    text = world.run("diff", "good", "flaky").out
    for part in ("epochs", "(none)", "→  2", "0.3333", "added", "extra.py", "+x = 1"):
        assert part in text
    found = world.run("diff", "good", "flaky", "--json").json
    assert found["parameters"]["lr"] == [0.5, None]
    assert [(file["name"], file["how"]) for file in found["files"]] == [("extra.py", "added")]
    assert "do not differ" in world.run("diff", "good", "good").out


def test_attach_to_an_ended_run_prints_its_log_and_code(world: World) -> None:
    answer = world.run("attach", "good")
    assert answer.code == 0
    assert answer.out == world.run("logs", "good").out
    assert world.run("attach", "bad").code == 1


def test_wait_is_zero_only_if_all_are_done(world: World) -> None:
    assert world.run("wait", "good", "flaky").code == 0
    assert world.run("wait", "--all").code == 1
    assert [row["state"] for row in world.run("wait", "bad", "--json").json] == ["failed"]


def test_doctor_is_content_with_a_healthy_machine(world: World) -> None:
    answer = world.run("doctor", "--json")
    assert answer.code == 0, answer.out
    checks = {check["what"]: check for check in answer.json}
    assert {"project", "hostler", "python", "git", "store", "clock", "disk", "cache", "runs"} <= checks.keys()
    assert checks["runs"]["detail"] == "1 failed, 2 done"
    assert checks["store"]["level"] == "ok"


def test_doctor_says_what_is_bad_and_what_to_do(fresh: World) -> None:
    fresh.write("hostler.yaml", "retrys: 3\n")
    answer = fresh.run("doctor", HOSTLER_DISK_MIN="1e18")
    assert answer.code == 1
    assert "retrys" in answer.out and "HOSTLER_DISK_MIN" in answer.out
    assert not fresh.store.exists()


def test_a_reader_that_leaves_early_is_no_error(world: World) -> None:
    for verb in ("logs", "show"):
        process = world.start(verb, "bad")
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(60) == 0
        process.stderr.close()


def test_following_goes_from_before_the_start_to_the_end(fresh: World) -> None:
    fresh.run("run", "--detach", "--name", "slow", "train.py", "--epochs", "4", "--nap", "0.3")
    logs, attached = fresh.start("logs", "-f", "slow"), fresh.start("attach", "slow")
    waited = fresh.run("wait", "slow")
    assert waited.code == 0 and waited.out.splitlines()[-1].startswith("slow  done")
    out, _ = logs.communicate(timeout=60)
    assert [json.loads(line)["step"] for line in out.splitlines()] == [1, 2, 3, 4]
    assert attached.communicate(timeout=60)[0] == out
    assert attached.returncode == 0


def test_wait_gives_up_when_its_time_is_up(fresh: World) -> None:
    fresh.run("run", "--detach", "--name", "slow", "train.py", "--nap", "60")
    answer = fresh.run("wait", "slow", "--timeout", "0.5s")
    assert answer.code == 75
    assert "1 running" in answer.err or "1 queued" in answer.err
    assert fresh.run("wait", "slow", "--timeout", "soon").code == 2


def test_a_first_interrupt_of_attach_asks_the_run_to_stop(fresh: World) -> None:
    fresh.run("run", "--detach", "--name", "slow", "train.py", "--epochs", "900", "--nap", "0.1")
    attached = fresh.start("attach", "slow")
    assert attached.stdout is not None
    attached.stdout.readline()
    attached.send_signal(signal.SIGINT)
    eventually(
        lambda: (
            '"stop":"person"' in fresh.run("status", "--json").out.replace(" ", "")
            or attached.poll() is not None
        )
    )
    attached.send_signal(signal.SIGINT)
    assert attached.wait(60) == 130
    attached.communicate()
    assert fresh.run("status", "--json").json[0]["state"] == "stopped"


def test_run_that_nobody_works_on_is_not_followed_forever(fresh: World) -> None:
    fresh.run("run", "--detach", "--name", "lonely", "train.py", "--nap", "60")
    eventually(lambda: fresh.in_state("running") == 1)
    attached = fresh.start("attach", "lonely")
    fresh.kill_workers()
    _, said = attached.communicate(timeout=60)
    assert attached.returncode == 1
    assert "nobody works on lonely" in said and f"hostler worker {fresh.store}" in said
    assert "nobody works on 1 lost run" in fresh.run("status").err
    assert "lost?" in fresh.run("show", "lonely").out
    checks = fresh.run("doctor", "--json").json
    assert [check["level"] for check in checks if check["what"] == "lost"] == ["warn"]


def test_run_shows_its_workers_output_when_that_leaves_early(fresh: World) -> None:
    fresh.write("hostler.yaml", "resources: {gpus: 8}\n")
    answer = fresh.run("run", "--name", "large", "train.py")
    assert answer.code == 1
    assert "nobody works on large (queued" in answer.err
    assert "do not fit this machine" in answer.err
    assert "nobody works on 1 queued run:" in fresh.run("status").err


def shown_on_terminal(world: World, *words: str, **variables: str) -> str:
    command = [sys.executable, "-m", "hostler", *words]
    code, shown = on_terminal(command, cwd=world.folder, env={**world.env, **variables})
    assert code == 0, shown
    return shown
