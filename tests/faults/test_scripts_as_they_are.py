"""Scripts that know nothing of hostler, killed again and again, go on from what they saved."""

from __future__ import annotations

import random
import signal
import sys
import time
from pathlib import Path

import pytest
from killer import RUN, WORKER, Farm, farm, keys_of, often, outcome, send, until

from hostler.records.checkpoint import checkpoints
from hostler.spec.job import Job

STEPS = 40
TOTAL = sum(n * n for n in range(1, STEPS + 1))

SHELL = f"""
folder=$1
n=0; total=0
if [ -f "$folder/state" ]; then read -r n total < "$folder/state"; fi
while [ "$n" -lt {STEPS} ]; do
    n=$((n + 1)); total=$((total + n * n))
    echo "{{\\"step\\": $n, \\"total\\": $total}}"
    echo "$n $total" > "$folder/.state.tmp" && mv "$folder/.state.tmp" "$folder/state"
    if [ $((n % 5)) = 0 ]; then sleep 0.35; else sleep 0.02; fi
done
"""

PYTHON = f"""
import json, os, sys, time
state = os.path.join(sys.argv[1], "state")
n, total = map(int, open(state).read().split()) if os.path.exists(state) else (0, 0)
while n < {STEPS}:
    n += 1; total += n * n
    print(json.dumps({{"step": n, "total": total}}))
    with open(state + ".tmp", "w") as file:
        file.write(f"{{n}} {{total}}\\n")
    os.replace(state + ".tmp", state)
    time.sleep(0.35 if n % 5 == 0 else 0.02)
"""

# Goes on only if it is told to, and from the file it is told.
FLAG = PYTHON.replace(
    'state = os.path.join(sys.argv[1], "state")\n',
    'state = os.path.join(sys.argv[1], "state")\n'
    "told = sys.argv[3] if sys.argv[2:3] == ['--resume'] else None\n"
    "assert told in (None, state), told\n",
).replace("if os.path.exists(state) else", "if told else")

SCRIPTS = {
    "shell": (("sh", "count.sh"), "count.sh", SHELL, ()),
    "python": ((sys.executable, "count.py"), "count.py", PYTHON, ()),
    "flag": ((sys.executable, "count.py"), "count.py", FLAG, ("--resume", "{checkpoint_dir}/state")),
    "odd path": ((sys.executable, 'it\'s a "script".py'), 'it\'s a "script".py', PYTHON, ()),
}


def submitted(made: Farm, name: str) -> Job:
    command, path, text, resume = SCRIPTS[name]
    (made.code / path).write_text(text)
    job = Job(name="as-it-is", command=(*command, "{checkpoint_dir}"), resume=resume, **often())  # type: ignore[arg-type]
    return made.submit(job)


@pytest.mark.parametrize("name", SCRIPTS)
def test_script_killed_again_and_again_ends_with_the_right_result(name: str, tmp_path: Path) -> None:
    rng = random.Random(name)
    with farm(str(tmp_path / "store"), tmp_path) as made:
        job = submitted(made, name)
        [key] = keys_of(job)
        made.start()
        for kind in (RUN, WORKER, RUN):
            until(lambda: made.processes(RUN) and checkpoints.committed(made.store, key.run), why=made.said)
            time.sleep(rng.uniform(0.0, 0.5))
            for pid in sorted(made.processes(kind))[:1]:
                send(pid, signal.SIGKILL)
        made.finish(job, workers=1)
        found = outcome(made.store, key)
        assert found.state.state == "done" and found.state.attempts >= 3
        assert found.end["restored"], "it began from the beginning"
        totals = [sum(n * n for n in range(1, last + 1)) for last in range(1, STEPS + 1)]
        assert found.points["total"] == [(n, float(total)) for n, total in enumerate(totals, start=1)]
        assert found.files["state"].split() == [str(STEPS).encode(), str(TOTAL).encode()]
        assert made.processes() == {}
