"""Submit scripts that end in `python train.py $1`."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hostler.backends.base import Launch
from hostler.backends.slurm.backend import SlurmBackend
from hostler.errors import UsageError
from hostler.spec.formats import submit_script
from hostler.spec.project import Fleet
from hostler.spec.scalars import for_yaml

OLD = """\
#!/bin/bash
# training on small GPUs
#SBATCH --partition=killable
#SBATCH --gpus=1
source ~/.bashrc
conda activate dev
export TOKENS=3

python train.py $1"""


def test_worker_stands_where_the_program_stood() -> None:
    found = submit_script.find(OLD)
    assert found and found.text == OLD.replace("python train.py $1", 'exec "$@"\n')
    assert found.words() == ("python", "train.py", "{params_file}")


@pytest.mark.parametrize(
    ("line", "becomes", "words"),
    [
        (
            "OMP_NUM_THREADS=2 python train.py $1",
            'OMP_NUM_THREADS=2 exec "$@"',
            "python train.py {params_file}",
        ),
        ('srun python train.py "$1"', 'srun "$@"', "python train.py {params_file}"),
        (
            "srun -n 1 --mem=2G python -u train.py ${1}",
            'srun -n 1 --mem=2G "$@"',
            "python -u train.py {params_file}",
        ),
        (
            "python train.py --config $1 > log 2>&1",
            '"$@" > log 2>&1',
            "python train.py --config {params_file}",
        ),
        ("exec ./train.sh $1  # go", 'exec "$@"  # go', "./train.sh {params_file}"),
        ("python $HOME/train.py $1", 'exec "$@"', None),
    ],
)
def test_program_gives_way_and_the_rest_of_its_line_stays(line: str, becomes: str, words: str | None) -> None:
    found = submit_script.find(f"#!/bin/bash\n{line}\n")
    assert found and found.text == f"#!/bin/bash\n{becomes}\n"
    assert (found.words() or ()) == tuple((words or "").split())


def test_lines_after_the_program_are_still_run(tmp_path: Path) -> None:
    found = submit_script.find("A=1\npython train.py $1\necho after $A\n")
    assert found and not found.ends_there
    (tmp_path / "s.sh").write_text(found.text)
    ran = subprocess.run(["bash", str(tmp_path / "s.sh"), "echo", "a b"], capture_output=True, text=True)
    assert ran.stdout == "a b\nafter 1\n"


@pytest.mark.parametrize(
    "text", ["hostname\n", "echo $1\n", "cd $1\npython x.py\n", "# python train.py $1\n", ""]
)
def test_script_without_a_program_is_one_line(text: str) -> None:
    assert submit_script.find(text) is None
    with pytest.raises(UsageError, match=r"mine\.sh does not run its arguments, and no program with \$1"):
        SlurmBackend().plan(
            Fleet("f", "slurm", options={"script": "mine.sh"}), Launch(store="s", script=text or "\n")
        )


@pytest.mark.parametrize(
    ("text", "signal"), [(OLD, "--signal=B:USR1@90"), ('srun "$@"\n', "--signal=USR1@90")]
)
def test_notice_reaches_the_worker_in_the_shells_place(text: str, signal: str) -> None:
    plan = SlurmBackend().plan(
        Fleet("f", "slurm", options={"script": "mine.sh"}), Launch(store="s", script=text)
    )
    assert signal in plan.commands[0]


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(values)
def test_parameters_stay_the_same_json(value: object) -> None:
    assert json.loads(for_yaml(json.dumps(value))) == value


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_float_is_a_number_for_pyyaml(value: float) -> None:
    assert yaml.safe_load(for_yaml(json.dumps({"lr": value}))) == {"lr": value}
