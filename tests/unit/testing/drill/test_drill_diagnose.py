"""From evidence to what was not saved: every finding, and none where all is well."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from hostler.drill.compare import compare
from hostler.drill.diagnose import (
    DIFFERS,
    EXACT,
    FAILED,
    MAY_LOSE,
    NOT_LOADED,
    NOT_REPEATABLE,
    NOTHING_SAVED,
    UNTESTED,
    Diagnosis,
    diagnose,
    needs_control,
)
from hostler.drill.evidence import DrillAttempt, Evidence, Sight, of_lines

STEPS = range(1, 11)
CURVE = {step: 1 / step for step in STEPS}
FILES = {"checkpoint/last.pt": {"data/0": "aa", "data/1": "bb"}}


def marks(step: int, **changed: str) -> dict[str, str]:
    own = {"rng|numpy": f"n{step}", "rng|torch": f"t{step}", "generator|g": f"g{step}"}
    return {**own, **{key.replace("_", "|", 1): value for key, value in changed.items()}}


def line(step: int, **changed: str) -> Sight:
    return Sight("line", f"step {step}", marks(step, **changed))


def train(step: int, **changed: str) -> Sight:
    own = {"weights|o": f"w{step}", "optimizer|o": f"o{step}", "groups|o": "lr", "state|s": f"s{step}"}
    given = {key.replace("_", "|", 1): value for key, value in changed.items()}
    return Sight("step", "", {**marks(step), **own, **given})


def sights(steps: range, *, torch: bool = False) -> tuple[Sight, ...]:
    found: list[Sight] = []
    for step in steps:
        found += [train(step)] if torch else []
        found.append(line(step))
    return tuple(found)


def calm(*, torch: bool = False, curve: dict[int, float] = CURVE) -> Evidence:
    one = DrillAttempt(1, 5.0, steps=tuple(STEPS), sights=sights(STEPS, torch=torch))
    return Evidence("done", curves={"loss": curve}, files=FILES, tries=(one,))


def killed(
    second: tuple[Sight, ...],
    *,
    differs: bool = True,
    torch: bool = False,
    steps: tuple[int, ...] = tuple(range(5, 11)),
) -> Evidence:
    """Killed at step 6; the second attempt was given the checkpoint of step 4."""
    first = DrillAttempt(1, 3.0, True, steps=tuple(range(1, 7)), sights=sights(range(1, 7), torch=torch))
    again = DrillAttempt(2, 3.0, restored="1-1", steps=steps, sights=second)
    curve = {step: value + (step >= 5) * differs for step, value in CURVE.items()}
    files = {"checkpoint/last.pt": {"data/0": "aa", "data/1": "XX"}} if differs else FILES
    return Evidence("done", curves={"loss": curve}, files=files, tries=(first, again))


def kinds(found: Diagnosis) -> list[str]:
    return [finding.kind for finding in found.findings]


def test_the_same_to_the_bit_is_exact() -> None:
    found = diagnose(calm(), killed(sights(range(5, 11)), differs=False))
    assert found.verdict == EXACT and not found.findings


def test_one_bit_is_a_difference() -> None:
    other = replace(calm(), curves={"loss": {**CURVE, 7: math.nextafter(1 / 7, 1)}})
    [difference] = compare(calm(), other)
    assert (difference.name, difference.step) == ("loss", 7)


def test_nan_is_the_same_as_nan() -> None:
    assert not compare(calm(curve={1: math.nan}), calm(curve={1: math.nan}))


def test_what_the_worker_measures_is_not_compared() -> None:
    other = replace(calm(), curves={"loss": CURVE, "system/cpu": {1: 3.0}})
    assert not compare(calm(), other)


def test_a_file_is_compared_part_by_part() -> None:
    [difference] = compare(
        calm(), replace(calm(), files={"checkpoint/last.pt": {"data/0": "aa", "data/1": "c"}})
    )
    assert difference.detail == "differs in 1 of 2 parts: data/1"


def test_missing_and_extra_files_are_named() -> None:
    found = compare(calm(), replace(calm(), files={"output/x": {"": "1"}}))
    assert [(d.name, d.detail) for d in found] == [
        ("checkpoint/last.pt", "is missing"),
        ("output/x", "was not left by the undisturbed run"),
    ]


def test_lines_count_only_where_there_are_no_metrics() -> None:
    one = Evidence("done", lines=("loss 0.5", "loss 0.4", "hello"))
    other = Evidence("done", lines=("loss 0.5", "goes on", "loss 0.41"))
    assert [d.name for d in compare(one, other)] == ["loss 0.4"]
    assert not compare(replace(one, curves={"loss": CURVE}), replace(other, curves={"loss": CURVE}))


def test_unsaved_random_state_is_named_with_advice() -> None:
    second = (line(5, rng_numpy="other"), *sights(range(6, 11)))
    found = diagnose(calm(), killed(second))
    assert found.verdict == DIFFERS
    [finding] = found.findings
    assert finding.text.startswith("NumPy's random state (np.random) is not restored: at 'step 5'")
    assert "np.random.get_state()" in finding.advice


def test_a_generator_of_the_scripts_own_is_named() -> None:
    found = diagnose(calm(), killed((line(5, generator_g="other"),)))
    assert kinds(found) == ["generator"]


@pytest.mark.parametrize(
    ("changed", "kind", "word"),
    [
        ("optimizer_o", "optimizer", "momentum"),
        ("groups_o", "groups", "learning rate"),
        ("state_s", "state", "the state of the s"),
        ("rng_torch", "rng", "torch's random state"),
    ],
)
def test_difference_before_the_first_step_was_not_restored(changed: str, kind: str, word: str) -> None:
    second = (train(5, **{changed: "other"}), line(5, rng_torch="other", rng_numpy="other"))
    found = diagnose(calm(torch=True), killed(second, torch=True))
    assert kinds(found) == [kind]
    assert word in found.findings[0].text


def test_weights_that_never_were_are_named() -> None:
    found = diagnose(calm(torch=True), killed((train(5, weights_o="other"),), torch=True))
    assert kinds(found)[0] == "weights"


def test_data_is_to_blame_where_all_visible_state_agrees() -> None:
    second = (train(5), train(6, weights_o="other"), line(6))
    assert kinds(diagnose(calm(torch=True), killed(second, torch=True))) == ["position"]


def test_difference_before_any_kill_is_not_the_restarts_fault() -> None:
    first = replace(
        calm().first, sights=tuple(replace(s, marks={**s.marks, "rng|python": "p1"}) for s in sights(STEPS))
    )
    one = replace(calm(), tries=(first,))
    other = killed((line(5, rng_python="p3", rng_numpy="other"),))
    early = tuple(replace(s, marks={**s.marks, "rng|python": "p2"}) for s in other.first.sights)
    other = replace(other, tries=(replace(other.first, sights=early), other.tries[1]))
    [finding] = diagnose(one, other).findings
    assert "NumPy" in finding.text


def test_skipped_steps_are_named_by_what_the_process_carried() -> None:
    second = (Sight("line", "step 7", marks(5)),)
    [finding] = diagnose(calm(), killed(second, steps=(7, 8, 9, 10))).findings
    assert finding.kind == "skipped"
    assert "came to 'step 7' as the undisturbed run did to 'step 5'" in finding.text


def test_reseeded_generator_is_not_a_matter_of_position() -> None:
    [first, *_] = diagnose(calm(), killed((Sight("line", "step 5", marks(1)),))).findings
    assert first.kind == "generator"


def test_a_step_that_nobody_did_is_named() -> None:
    other = killed(sights(range(7, 11)), steps=(7, 8, 9, 10))
    other = replace(other, curves={"loss": {s: v for s, v in CURVE.items() if s not in (5, 6)}})
    [finding] = diagnose(calm(), other).findings
    assert finding.text == "step 5 was never done: attempt 2 began with step 7"


def test_unloaded_checkpoint_fails_even_if_the_end_is_equal() -> None:
    again = killed(sights(STEPS), differs=False, steps=tuple(STEPS))
    found = diagnose(calm(), again)
    assert found.verdict == NOT_LOADED
    assert "was given checkpoint 1-1, but opened none of its files" in found.findings[0].text


def test_a_script_that_saves_nothing_is_told_so() -> None:
    one, other = replace(calm(), files={}), killed(sights(STEPS), differs=False)
    tries = (other.first, replace(other.tries[1], restored=""))
    found = diagnose(one, replace(other, files={}, tries=tries))
    assert found.verdict == NOTHING_SAVED
    assert found.findings[0].text == "nothing was saved: every kill starts the script anew"
    assert "$HOSTLER_CHECKPOINT_DIR" in found.findings[0].advice


def test_one_whose_folder_never_rests_is_told_that() -> None:
    other = killed(sights(STEPS), differs=False)
    other = replace(other, tries=(other.first, replace(other.tries[1], restored="")))
    assert kinds(diagnose(calm(), other)) == ["never-at-rest"]


@pytest.mark.parametrize("kept", [True, False])
def test_a_script_at_the_edge_may_lose_whatever_happened(kept: bool) -> None:
    """The load of the machine decided, and may decide otherwise in the next kill."""
    found = killed(sights(range(5, 11)), differs=False)
    first, again = found.tries
    tries = (replace(first, at_edge=True), again if kept else replace(again, restored=""))
    said = diagnose(calm(), replace(found, tries=tries))
    assert said.verdict == MAY_LOSE and kinds(said) == [MAY_LOSE]
    assert "rename" in said.findings[0].advice


def test_a_difference_weighs_more_than_what_may_be_lost() -> None:
    found = killed(sights(range(5, 11)))
    first, again = found.tries
    assert diagnose(calm(), replace(found, tries=(replace(first, at_edge=True), again))).verdict == DIFFERS


def test_nothing_is_said_of_a_script_that_was_not_killed() -> None:
    found = diagnose(calm(), calm())
    assert found.verdict == UNTESTED


def test_a_kill_after_the_last_step_tests_nothing() -> None:
    assert diagnose(calm(), killed((), differs=False, steps=())).verdict == UNTESTED


def test_script_that_fails_after_the_restart_shows_its_error() -> None:
    other = replace(killed(sights(range(5, 11))), state="failed", failure="EOFError: Ran out of input")
    found = diagnose(calm(), other)
    assert found.verdict == FAILED and "EOFError" in found.findings[0].text


def test_differing_undisturbed_runs_only_show_what_is_not_seeded() -> None:
    control = calm(curve={step: value + 1 for step, value in CURVE.items()})
    other = replace(control.first, sights=tuple(line(s, rng_torch=f"x{s}") for s in STEPS))
    control = replace(control, files={"checkpoint/last.pt": {"data/0": "zz"}}, tries=(other,))
    found = diagnose(calm(), killed(sights(range(5, 11))), control)
    assert found.verdict == NOT_REPEATABLE
    assert any("torch's random state (CPU) differs in each run" in f.text for f in found.findings)


def test_metric_that_differs_by_itself_is_left_out() -> None:
    def timed(evidence: Evidence, seconds: float) -> Evidence:
        return replace(evidence, curves={**evidence.curves, "seconds": {1: seconds}})

    found = diagnose(
        timed(calm(), 1.0), timed(killed(sights(range(5, 11)), differs=False), 2.0), timed(calm(), 3.0)
    )
    assert found.verdict == EXACT
    assert [d.name for d in found.noisy] == ["seconds"]


def test_second_undisturbed_run_is_made_only_for_a_difference() -> None:
    assert not needs_control(calm(), killed(sights(range(5, 11)), differs=False))
    assert needs_control(calm(), killed(sights(range(5, 11))))


def test_a_sight_cut_short_by_the_kill_is_no_sight() -> None:
    whole = '{"kind": "line", "key": "step 1", "marks": {}}'
    assert len(of_lines([whole, whole[:20]])) == 1
