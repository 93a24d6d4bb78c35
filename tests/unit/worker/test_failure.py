from __future__ import annotations

import signal
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hostler.errors import (
    DamagedError,
    HostlerError,
    MachineError,
    MissingError,
    NewerFormatError,
    PrepareError,
    UsageError,
)
from hostler.worker.gang.first_failure import cause, with_port
from hostler.worker.run import kinds
from hostler.worker.run.exit import Exit
from hostler.worker.run.failure import Verdict, classify, unready, usage_complaint
from hostler.worker.run.run_folders import in_project

FRAME = 'Traceback (most recent call last):\n  File "/x/train.py", line 7, in main\n    step()\n'


def traceback(error: str, frame: str = FRAME) -> str:
    return f"epoch 1\n{frame}{error}\n"


USAGE = "usage: train.py [-h] [--lr LR]\ntrain.py: error: unrecognized arguments: --foo 1\n"
CLICK = "Usage: train.py [OPTIONS]\nTry 'train.py --help' for help.\n\nError: No such option: --foo\n"
SYNTAX = '  File "/x/train.py", line 3\n    def f(:\n          ^\nSyntaxError: invalid syntax\n'

# exit, tail, what was asked of it -> kind, a part of the message
ROWS: list[tuple[Exit, str, dict[str, Any], str, str]] = [
    (Exit(code=0), "", {}, "done", "done"),
    (Exit(code=0), traceback("ValueError: caught and logged"), {}, "done", "done"),
    (Exit(code=3), "", {"finished": True}, "done", "exit code 3 after finish"),
    (Exit(signal=9), "", {"finished": True, "killed_for": "hang"}, "done", "after finish"),
    (Exit(code=0), "", {"stop": "preempted"}, "not-finished", "preempted"),
    (Exit(code=75), "", {"stop": "preempted"}, "not-finished", "preempted"),
    (Exit(code=0), "", {"stop": "preempted", "finished": True}, "done", "done"),
    (Exit(signal=15), "", {"stop": "person"}, "not-finished", "person"),
    (Exit(signal=9), "", {"stop": "cap"}, "not-finished", "its money or time is used up"),
    (Exit(code=143), "", {"stop": "cap"}, "not-finished", "its money or time is used up"),
    (Exit(code=1), traceback("KeyboardInterrupt"), {"stop": "person"}, "not-finished", "person"),
    (Exit(code=1), traceback("ValueError: in save"), {"stop": "person"}, "error", "ValueError: in save"),
    (Exit(code=75), "", {}, "tempfail", "exit code 75"),
    (Exit(code=1), traceback("ValueError: bad lr 0.1"), {}, "error", "ValueError: bad lr 0.1"),
    (Exit(code=1), traceback("AssertionError"), {}, "error", "AssertionError"),
    (Exit(code=3), "loading\ngiving up\n", {}, "exit-code", "exit code 3: giving up"),
    (Exit(code=3), "", {}, "exit-code", "exit code 3"),
    (
        Exit(code=1),
        traceback("ModuleNotFoundError: No module named 'x'"),
        {},
        "import-error",
        "No module named",
    ),
    (Exit(code=1), traceback("ImportError: libfoo.so.1: cannot open"), {}, "import-error", "libfoo"),
    (Exit(code=1), SYNTAX, {}, "syntax", "SyntaxError: invalid syntax"),
    (Exit(code=1), traceback("IndentationError: unexpected indent"), {}, "syntax", "IndentationError"),
    (Exit(code=2), USAGE, {}, "usage", "unrecognized arguments: --foo 1"),
    (Exit(code=2), CLICK, {}, "usage", "No such option: --foo"),
    (Exit(code=2), "tables written\n", {}, "exit-code", "exit code 2"),
    (Exit(code=2), "hostler: no lr_schedule 'x'\n  → constant, cosine\n", {}, "usage", "no lr_schedule 'x'"),
    (Exit(code=1), "hostler: x needs the package y\n  → pip\n", {}, "import-error", "needs the package y"),
    (Exit(code=1), "hostler: no a9a\n  → fetch it\n", {}, "exit-code", "exit code 1: hostler: no a9a"),
    (Exit(code=127, spawn_error="command not found: x"), "", {}, "not-found", "command not found: x"),
    (Exit(signal=11), "", {}, "crash", "SIGSEGV"),
    (Exit(signal=7), "", {}, "crash", "SIGBUS"),
    (Exit(signal=6), "", {}, "crash", "SIGABRT"),
    (Exit(code=139), "run.sh: Segmentation fault\n", {}, "crash", "SIGSEGV"),
    (Exit(signal=9), "", {}, "killed", "SIGKILL"),
    (Exit(signal=15), "", {}, "killed", "SIGTERM"),
    (Exit(code=137), "Killed\n", {}, "killed", "SIGKILL"),
    (Exit(signal=27), "", {}, "killed", "SIGPROF"),
    (Exit(code=1), traceback("KeyboardInterrupt"), {}, "killed", "KeyboardInterrupt"),
    (Exit(signal=9, oom=True), "", {}, "memory", "out of memory"),
    (Exit(code=137, oom=True), "Killed\n", {}, "memory", "out of memory"),
    (Exit(code=1), traceback("MemoryError"), {}, "memory", "MemoryError"),
    (
        Exit(code=1),
        traceback("numpy.core._exceptions._ArrayMemoryError: Unable to allocate 9 GiB"),
        {},
        "memory",
        "Unable",
    ),
    (
        Exit(code=1),
        traceback("RuntimeError: DataLoader worker (pid 7) is killed by signal: Killed."),
        {},
        "memory",
        "DataLoader",
    ),
    (
        Exit(signal=6),
        "terminate called after throwing an instance of 'std::bad_alloc'\n",
        {},
        "memory",
        "bad_alloc",
    ),
    (Exit(signal=9), "", {"killed_for": "memory"}, "memory", "resources.memory"),
    (
        Exit(code=1),
        traceback("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"),
        {},
        "cuda-memory",
        "CUDA out",
    ),
    (Exit(code=1), traceback("RuntimeError: CUDA error: out of memory"), {}, "cuda-memory", "out of memory"),
    (
        Exit(code=1),
        traceback("RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate`"),
        {},
        "cuda-memory",
        "CUBLAS",
    ),
    (
        Exit(code=1),
        traceback("jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying"),
        {},
        "cuda-memory",
        "RESOURCE_EXHAUSTED",
    ),
    (
        Exit(code=1),
        traceback("RuntimeError: CUDA error: device-side assert triggered"),
        {},
        "cuda-error",
        "device-side",
    ),
    (
        Exit(signal=6),
        "what(): CUDA error: uncorrectable ECC error encountered\n",
        {},
        "cuda-error",
        "uncorrectable ECC",
    ),
    (
        Exit(code=1),
        traceback("OSError: [Errno 28] No space left on device: 'a.pt'"),
        {},
        "disk-full",
        "No space left",
    ),
    (Exit(code=1), traceback("OSError: [Errno 122] Disk quota exceeded"), {}, "disk-full", "quota"),
    (Exit(signal=9), traceback("ValueError: old"), {"killed_for": "hang"}, "hang", "limits.hang"),
    (Exit(signal=9), "", {"killed_for": "start"}, "slow-start", "limits.start"),
    (Exit(signal=9), "", {"killed_for": "time"}, "time-limit", "limits.time"),
    (Exit(supervisor_lost=True), "", {}, "supervisor-lost", "watched"),
    (
        Exit(code=1),
        traceback("hostler.errors.Diverged: the loss is nan"),
        {"left": {"how": "diverged", "message": "the loss is nan"}},
        "diverged",
        "the loss is nan",
    ),
]


@pytest.mark.parametrize(
    ("exit", "tail", "asked", "kind", "part"), ROWS, ids=[f"{i}-{row[3]}" for i, row in enumerate(ROWS)]
)
def test_each_end_has_its_kind(exit: Exit, tail: str, asked: dict[str, Any], kind: str, part: str) -> None:
    verdict = classify(exit, tail, **asked)
    assert (verdict.kind, part in verdict.message) == (kind, True), verdict
    assert "\n" not in verdict.message


def test_rows_cover_every_kind_and_every_kind_has_a_policy() -> None:
    no_process = {kinds.WORKER, kinds.GANG, kinds.UNREACHED}
    of_one = {row[3] for row in ROWS} | {row[1] for row in UNREADY} | no_process
    assert of_one | {row[2] for row in TOGETHER} == set(kinds.POLICY)


ERROR = Verdict(kinds.ERROR, "ValueError: bad lr")
TAKEN = Verdict(kinds.ERROR, "OSError: [Errno 98] Address already in use")

# of several nodes: how ours ended, which others are gone -> kind, a part of the message
TOGETHER: list[tuple[Verdict, dict[int, str], str, str]] = [
    (ERROR, {}, kinds.ERROR, "bad lr"),
    (ERROR, {2: "h2"}, kinds.RANK_LOST, "node 2 (h2) is gone"),
    (Verdict(kinds.NOT_FINISHED, "stopped"), {2: "h2"}, kinds.NOT_FINISHED, "stopped"),
    (TAKEN, {}, kinds.PORT, "the port was taken"),
    (Verdict(kinds.ERROR, "failed", "RuntimeError: EADDRINUSE"), {}, kinds.PORT, "the port was taken"),
    (Verdict(kinds.DONE, "said: address already in use"), {}, kinds.DONE, "said"),
]


@pytest.mark.parametrize(("own", "lost", "kind", "part"), TOGETHER)
def test_the_end_of_several_has_its_kind(own: Verdict, lost: dict[int, str], kind: str, part: str) -> None:
    verdict = with_port(cause(own, {}, lost))
    assert (verdict.kind, part in verdict.message) == (kind, True), verdict


UNREADY = [
    (PrepareError("setup failed", hint="see its log"), kinds.PREPARE),
    (MissingError("there is no /data"), kinds.PREPARE),
    (UsageError("a zero byte"), kinds.PREPARE),
    (NewerFormatError("newer"), kinds.PREPARE),
    (MachineError("no conda on this machine"), kinds.MACHINE),
    (OSError(28, "No space left on device"), kinds.MACHINE),
    (DamagedError("no checkpoint can be used"), kinds.DAMAGED),
]


@pytest.mark.parametrize(("error", "kind"), UNREADY)
def test_a_run_that_never_started_has_a_kind_too(error: HostlerError | OSError, kind: str) -> None:
    verdict = unready(error, lambda text: text)
    assert verdict.kind == kind and verdict.message == str(error) and verdict.signature


def test_failed_commands_output_is_masked_and_numbers_make_no_difference() -> None:
    verdicts = [
        unready(PrepareError(f"setup failed: pw{n} 1{n}"), lambda t: t.replace("pw", "*")) for n in "12"
    ]
    assert "pw" not in verdicts[0].message and verdicts[0].signature == verdicts[1].signature


def test_failed_preparation_is_one_line_with_its_output_beside_it() -> None:
    printed = "Traceback (most recent call last):\n  File x\nModuleNotFoundError: No module named 'numpy'"
    verdict = unready(PrepareError(f"preparing data 'a' failed (exit 1):\n{printed}"), str)
    assert (
        verdict.message == "preparing data 'a' failed (exit 1): ModuleNotFoundError: No module named 'numpy'"
    )
    assert verdict.traceback == printed


def test_policy_is_among_the_five_and_failures_carry_advice() -> None:
    for kind, policy in kinds.POLICY.items():
        assert policy.retry in ("failures", "lost", "exit75", "never", "none")
        assert policy.advice or kind in ("done", "not-finished")


def test_caught_cuda_error_earlier_does_not_name_a_later_failure() -> None:
    tail = "CUDA out of memory, halving the batch\n" + traceback("KeyError: 'val'")
    assert classify(Exit(code=1), tail).kind == "error"


def test_error_signature_ignores_numbers_paths_and_machines() -> None:
    one = traceback("ValueError: lr 0.1 of /a/b/run-1/x.pt at 0x7f00aa")
    other = traceback(
        "ValueError: lr 3e-5 of /tmp/q/run-2/x.pt at 0x7f11bb",
        FRAME.replace("/x/", "/home/me/.cache/code/55aa/"),
    )
    assert signature(one) == signature(other) != ""


def test_another_line_type_or_text_is_another_error() -> None:
    variants = [
        traceback("ValueError: bad lr"),
        traceback("KeyError: bad lr"),
        traceback("ValueError: bad momentum"),
        traceback("ValueError: bad lr", FRAME.replace("line 7", "line 8")),
    ]
    assert len({signature(tail) for tail in variants}) == 4


def test_exit_code_changes_the_error_and_last_line_does_not() -> None:
    def of(code: int, tail: str) -> str:
        return classify(Exit(code=code), tail).signature

    assert of(3, "a\n") == of(3, "b\n") != of(4, "a\n")


def test_a_signal_python_has_no_name_for_is_still_described() -> None:
    number = int(signal.SIGRTMAX) - 1 if hasattr(signal, "SIGRTMAX") else 40
    assert f"signal {number}" in classify(Exit(signal=number), "").message


def test_a_long_message_is_cut_to_one_short_line() -> None:
    assert len(verdict_of("ValueError: " + "x" * 5000).message) == 300


def signature(tail: str) -> str:
    return classify(Exit(code=1), tail).signature


def verdict_of(error: str) -> Verdict:
    return classify(Exit(code=1), traceback(error))


def test_message_of_the_library_does_not_explain_a_signal() -> None:
    tail = (
        "hostler: a checkpoint is delayed: the one of step 1 is still being written; the training goes on\n"
    )
    assert classify(Exit(signal=9), tail).message == "killed by SIGKILL"
    assert tail.strip() in classify(Exit(code=3), tail).message, "there it may be the reason"


@pytest.mark.parametrize(
    "line",
    ["epoch 2 train_loss 1.08", "step 3 error 0.31", "val error: 0.2", "giving up", " 40%|####  | 4/10"],
)
@pytest.mark.parametrize("how", [Exit(signal=9), Exit(signal=15), Exit(code=137), Exit(signal=11)])
def test_ordinary_line_does_not_explain_a_signal(how: Exit, line: str) -> None:
    assert classify(how, f"begins\n{line}\n").message.startswith(("killed by SIG", "crashed (SIG"))
    assert line.split()[-1] not in classify(how, f"begins\n{line}\n").message


@pytest.mark.parametrize(
    "line",
    [
        "slurmstepd: error: *** JOB 7 CANCELLED DUE TO TIME LIMIT ***",
        "Fatal Python error: Segmentation fault",
    ],
)
def test_line_that_tells_of_an_end_explains_a_signal(line: str) -> None:
    assert classify(Exit(signal=15), f"{line}\n").message == f"killed by SIGTERM: {line}"


@pytest.mark.parametrize("border", ["╰──────╯", "^^^^^", "-----", " 40%|####  | 4/10", "│      │"])
def test_message_is_the_last_line_that_says_something(border: str) -> None:
    assert classify(Exit(code=3), f"no data\n{border}\n").message == "exit code 3: no data"


def test_where_is_the_users_line_not_the_librarys() -> None:
    deep = FRAME + '  File "/v/lib/python3.11/site-packages/torch/a.py", line 3, in f\n    g()\n'
    verdict = classify(Exit(code=1), traceback("ValueError: no", deep))
    assert (verdict.error, verdict.where) == ("ValueError", "/x/train.py:7")


def test_files_of_the_runs_folder_are_named_as_in_the_project() -> None:
    cache = Path("/c a")
    for folder in ("/c a/runs/session/0-s-1/work/", "/c a/prepared/55aa/"):
        tail = traceback(f"ValueError: no {folder}data/x.csv", FRAME.replace("/x/", f"{folder}src/"))
        verdict = classify(Exit(code=1), tail, in_project=partial(in_project, cache))
        assert (verdict.message, verdict.where) == ("ValueError: no data/x.csv", "src/train.py:7")
        assert folder not in verdict.traceback and 'File "src/train.py", line 7' in verdict.traceback


def test_other_folders_of_the_cache_keep_their_path() -> None:
    for path in ("/c/runs/s/0-s-1/checkpoint/x.pt", "/c/data/work/x.csv", "/d/runs/s/r-1/work/x"):
        assert in_project(Path("/c"), path) == path


def test_import_from_a_broken_mount_may_work_the_next_time() -> None:
    broken = "ImportError: /nfs/lib.so: cannot read: Stale file handle"
    assert classify(Exit(code=1), traceback(broken)).kind == "error"
    cause = traceback("OSError: [Errno 5] Input/output error: '/nfs/x.py'") + (
        "\nDuring handling of the above exception, another exception occurred:\n\n"
    )
    assert classify(Exit(code=1), cause + FRAME + "ImportError: cannot import x\n").kind == "error"


def test_usage_complaint_can_be_asked_for() -> None:
    assert usage_complaint(USAGE) == "train.py: error: unrecognized arguments: --foo 1"
    assert usage_complaint("step 1\n") == ""


def test_message_of_one_long_word_is_compared_at_once() -> None:
    began = time.process_time()
    found = classify(Exit(code=1), traceback("ValueError: " + "a" * 60_000))
    assert found.signature and time.process_time() - began < 2.0
