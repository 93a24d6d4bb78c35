"""Sleeps of tests: between two looks at something, or on purpose; any other could be a wait for a condition.

A look's pause is in a loop that something ends, and at most LOOK seconds long. What sleeps on purpose is
listed by its function, below the reason. Scripts that tests start are texts here: their naps are theirs.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

LOOK = 0.5
ENDS = (ast.Break, ast.Return, ast.Raise, ast.Assert)

ON_PURPOSE: Mapping[str, tuple[str, ...]] = {
    "a fault at a moment that chance chooses": (
        "contract/test_gce_emulator_groups.py::test_after_any_faults_a_group_is_stable_and_leaves_nothing",
        "faults/killer.py::rage",
        "faults/test_drill_agrees.py::survived",
        "faults/test_exact_by_hand.py::finish",
        "faults/test_killed_with_worker.py::test_script_killed_with_its_worker_goes_on_from_its_newest",
        "faults/test_last_moments.py::test_reader_killed_while_delivering_leaves_the_rest_to_the_next",
        "faults/test_progress_kept.py::test_kill_in_ten_seconds_keeps_saves_of_every_half_second",
        "faults/test_rewritten_by_hand.py::kill_often",
        "faults/test_rewritten_in_place.py::kill_at_random",
        "faults/test_saved_often.py::survive",
        "faults/test_scripts_as_they_are.py::test_script_killed_again_and_again_ends_with_the_right_result",
        "frameworks/test_callbacks_progress.py::kill",
        "history/test_doses.py::killed_at_work",
        "history/test_library_histories.py::killed_by_hand",
        "walks/test_own_scripts.py::test_kill_in_the_first_ten_seconds_keeps_progress",
    ),
    "a fault that lasts": (
        "faults/proxy.py::act",
        "faults/test_partitions.py::test_worker_cut_off_for_half_a_lease_goes_on",
        "faults/test_partitions.py::test_worker_cut_off_for_three_leases_is_fenced",
        "faults/test_store_unreachable.py::test_run_is_stopped_saved_locally_and_delivered_later",
        "faults/test_takeover.py::test_worker_that_could_leave_stays_for_a_silent_holder",
        "hostile/culprits.py::hangs",
        "real/test_ssh_fleet.py::test_cut_off_host_finishes_and_delivers_when_it_is_back",
        "real/test_ssh_store.py::test_link_that_is_cut_and_comes_back_costs_only_time",
    ),
    "that nothing happens meanwhile is the test": (
        "contract/test_gce_emulator_groups.py::test_a_group_deleted_while_it_makes_machines_leaves_none",
        "contract/test_gce_emulator_groups.py::test_a_machine_whose_processes_are_killed_stays_and_costs",
        "contract/test_gce_emulator_groups.py::test_a_group_that_does_not_repair_leaves_what_is_broken",
        "contract/test_gce_emulator_metadata.py::test_wait_for_change_blocks_and_a_known_state_returns_immediately",
        "walks/test_gce_hand_work.py::test_an_open_connection_keeps_a_vm_from_being_idle",
        "walks/test_metric_walk.py::test_bucket_metrics_come_each_beat_only_for_an_open_dashboard",
    ),
    "seconds that cost money": (
        "contract/test_gce_emulator_groups.py::test_bill_counts_every_machine_and_disk_while_it_exists",
        "walks/test_cap_walk.py::test_the_money_of_workers_that_were_killed_comes_back",
    ),
    "nothing outside a process tells that it has come so far": (
        "contract/test_gce_emulator.py::test_without_notice_nothing_is_said",
        "contract/test_gce_emulator_metadata.py::test_who_waits_is_answered_when_the_machine_goes",
        "faults/test_exact_by_hand.py::test_sigterm_within_an_epoch_repeats_no_step_and_is_exact",
        "faults/test_killed_with_worker.py::test_living_worker_delivers_before_it_takes_a_lost_run",
        "faults/test_lost_answers.py::test_an_answer_that_comes_too_late_is_settled_by_reading",
        "faults/test_outcomes.py::test_a_stop_that_comes_during_preparation_starts_no_process",
        "faults/test_warm_deaths.py::test_any_kill_leaves_nothing_of_a_warm_run_and_resumes",
        "platform_takeovers.py::link_cut",
        "real/test_ssh_files.py::test_saved_file_arrives_in_a_moment_while_sync_watches",
    ),
    "the pace of a training, a retry or a program": (
        "examples/folder_scheduler.py::main",
        "faults/exact_torch_training.py::step",
        "faults/test_bucket_faults.py::store",
        "faults/test_image_faults.py::building",
        "faults/test_lost_answers.py::store",
        "history/mixed.py::_read_only",
        "history/mixed.py::_wait",
    ),
    "what is tested is how a sleep is taken": (
        "fuzz/test_fuzz.py::_sleeps_long",
        "fuzz/test_fuzz.py::test_limit_of_a_test_goes_on_behind_its_readers",
    ),
}
LISTED = {place for places in ON_PURPOSE.values() for place in places}


def sleeping(tests: Path) -> dict[str, list[str]]:
    """place of a function, as the list has it → its sleeps that are no look's pause, with their lines."""
    found: dict[str, list[str]] = {}
    for path in sorted(tests.rglob("*.py")):
        name = path.relative_to(tests).as_posix()
        for function, line, seconds in long_sleeps(path.read_text()):
            found.setdefault(f"{name}::{function}", []).append(f"line {line}: sleep({seconds})")
    return found


def long_sleeps(source: str) -> Iterator[tuple[str, int, str]]:
    """Function, line and seconds of each sleep that is no look's pause."""
    if "sleep" in source:
        yield from _of(ast.parse(source), "<module>", in_loop=False)


def _of(node: ast.AST, function: str, *, in_loop: bool) -> Iterator[tuple[str, int, str]]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        function, in_loop = node.name, False
    elif isinstance(node, ast.Lambda):
        in_loop = False
    elif isinstance(node, ast.While | ast.For):
        in_loop = in_loop or _is_ended(node)
    elif isinstance(node, ast.Call) and _sleeps(node.func) and not _is_pause(node, in_loop):
        yield function, node.lineno, ast.unparse(node.args[0]) if node.args else ""
    for child in ast.iter_child_nodes(node):
        yield from _of(child, function, in_loop=in_loop)


def _sleeps(called: ast.expr) -> bool:
    if isinstance(called, ast.Attribute):
        return called.attr == "sleep" and isinstance(called.value, ast.Name) and called.value.id == "time"
    return isinstance(called, ast.Name) and called.id == "sleep"


def _is_ended(loop: ast.While | ast.For) -> bool:
    """Whether something that it looks at ends it, and not a count alone."""
    asks = isinstance(loop, ast.While) and not isinstance(loop.test, ast.Constant)
    return asks or any(isinstance(node, ENDS) for node in ast.walk(loop))


def _is_pause(call: ast.Call, in_loop: bool) -> bool:
    seconds = call.args[0].value if call.args and isinstance(call.args[0], ast.Constant) else None
    known = isinstance(seconds, int | float)
    return known and (seconds == 0 or (in_loop and seconds <= LOOK))  # type: ignore[operator]
