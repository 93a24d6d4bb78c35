"""Shell scripts of other tools: what is code, setup and command in them; what starts their VMs."""

from __future__ import annotations

import pytest

from hostler.spec.formats import burst, cloudl_folder, shell, startup
from hostler.spec.formats.startup import Startup

AT = "user_files/user_startup.sh"


def test_commands_are_found_and_quotes_hold_theirs_together() -> None:
    text = "#!/bin/bash\n# no\na 'b; c' && d \\\n  e # said\n\nf;g\r\n"
    assert shell.commands(text) == ["a 'b; c'", "d    e", "f", "g"]
    for more in ("if x; then y; fi", "for i in 1 2; do a; done", "f() {", "cat << END", "while true"):
        assert shell.commands(f"a\n{more}\n") is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("python train.py", Startup(("python", "train.py"))),
        (
            "git clone https://me:$TOKEN@github.com/me/code.git\ncd code\npython train.py --fast",
            Startup(("python", "train.py", "--fast"), git="https://github.com/me/code.git", token="TOKEN"),
        ),
        (
            "git clone -b dev --depth 1 git@host:me/code.git mine && cd mine/src\npip install -r n.txt\n./go",
            Startup(("env", "-C", "src", "./go"), requirements="src/n.txt", git="git@host:me/code.git@dev"),
        ),
        (
            "export A=1\nB='two words'\nsudo make x\npython3 -m pip install -r r.txt\npython t.py $A",
            Startup(
                ("python", "t.py", "1"),
                ("sudo make x",),
                {"A": "1", "B": "two words"},
                "r.txt",
            ),
        ),
        ("conda activate dev\npython t.py", Startup(("python", "t.py"), conda_env="dev")),
        ("cd src\nmake\npython t.py", Startup(("env", "-C", "src", "python", "t.py"), ("(cd src && make)",))),
    ],
)
def test_a_script_is_code_setup_and_command(text: str, expected: Startup) -> None:
    assert startup.read(text, AT) == expected


def test_what_is_not_carried_over_is_named() -> None:
    found = startup.read("pip install x\nnohup python t.py $BUCKET_NAME > log 2>&1 &\necho done", AT)
    assert found.command == ("bash", "-c", "python t.py $BUCKET_NAME")
    assert found.setup == ("pip install x",)
    assert found.notes == (
        "what it prints is the run's log",
        "$BUCKET_NAME was set by the other tool, and is not set here",
        "not carried over, since it comes after the training: echo done",
    )
    whole = startup.read("if true; then\npython t.py $TOKEN\nfi", AT)
    assert whole.command == ("bash", AT) and "each run runs all of it" in whole.notes[0]
    assert "$TOKEN" in whole.notes[1]
    assert "name the `command`" in startup.read("# nothing\n", AT).notes[0]


@pytest.mark.parametrize(
    ("text", "secrets"),
    [
        ("export A=1 API_KEY=hush B='x y'\npython t.py", ("API_KEY",)),
        ("A=1 B='x y' API_KEY=hush python t.py", ("API_KEY",)),
        ("export A=1 B='x y'\nwandb login --relogin hush\npython t.py", ("WANDB_API_KEY",)),
        ("A=1\nB='x y'\nexport API_KEY=$(echo hush hush)\npython t.py", ("API_KEY",)),
    ],
)
def test_script_secret_is_carried_over_by_name(text: str, secrets: tuple[str, ...]) -> None:
    found = startup.read(text, AT)
    assert (found.command, found.setup, found.env) == (("python", "t.py"), (), {"A": "1", "B": "x y"})
    assert found.secrets == secrets and "hush" not in str(found)
    assert startup.holds_secrets(text) or "$(" in text


def test_token_in_an_address_is_not_written() -> None:
    text = "git clone https://ghp_hush@host/me/code.git && cd code\npython t.py"
    found = startup.read(text, AT)
    assert (found.git, found.token) == ("https://host/me/code.git", "TOKEN")
    assert "hush" not in str(found) and startup.holds_secrets(text)


def test_what_only_sounds_like_a_secret_is_a_variable() -> None:
    found = startup.read("export TOKENIZERS_PARALLELISM=false\nMAX_TOKENS=9\npython t.py", AT)
    assert found.env == {"TOKENIZERS_PARALLELISM": "false", "MAX_TOKENS": "9"} and not found.secrets
    found = startup.read("KEY_HEADS=8\nUSE_TOKEN=false\nSSH_KEY=~/.ssh/id\nPAD_TOKEN=p\npython t.py", AT)
    assert list(found.env) == ["KEY_HEADS", "USE_TOKEN", "SSH_KEY", "PAD_TOKEN"] and not found.secrets
    told = burst.read(TRAIN.replace("SPARE=1", "KEY_HEADS=8"), lambda _: None)
    assert "metadata KEY_HEADS=8: not used" in told.notes


def test_machine_facts_are_computed_there_before_training() -> None:
    found = startup.read("export DAY=$(date +%d)\nP=$P:/x\npython t.py", AT)
    assert found.command == ("bash", "-c", "export DAY=$(date +%d); export P=$P:/x; python t.py")
    assert not found.env


def test_shell_changes_apply_to_setup_and_training() -> None:
    found = startup.read("source venv/bin/activate\nmake\nmodule load cuda\npython t.py", AT)
    assert found.command == ("bash", "-c", "source venv/bin/activate; module load cuda; python t.py")
    assert found.setup == ("source venv/bin/activate", "make", "module load cuda")
    found = startup.read("cd src\n. v/bin/activate\npython t.py", AT)
    assert found.command == ("env", "-C", "src", "bash", "-c", ". v/bin/activate; python t.py")
    assert found.setup == ("cd src && . v/bin/activate && cd - > /dev/null",)


def test_pipe_needs_a_shell_but_quoted_output_does_not() -> None:
    assert startup.read("python t.py | grep -v x", AT).command == ("bash", "-c", "python t.py | grep -v x")
    assert startup.read("python t.py 'a|b' > \"my log\" 2>&1", AT).command == ("python", "t.py", "a|b")


def test_an_option_that_may_hold_a_secret_is_named() -> None:
    assert any("--api-key" in one for one in startup.read("python t.py --api-key=hush", AT).notes)
    assert not startup.read("python t.py --tokenizer x --key-dim 3", AT).notes


def test_quick_start_says_how_many_and_where() -> None:
    text = "WORKERS=4\nARCHIVE=5\nBASE=./user_files\nclouDL my-project faces --archive $ARCHIVE \\\n"
    text += "  --datapth $BASE/data.tar.gz --cluster $WORKERS $BASE/configs.json \\\n"
    text += "  $BASE/user_startup.sh --newer 3\n"
    found = cloudl_folder.read_quickstart(text)
    assert (found.workers, found.archive, found.data) == (4, 5, "./user_files/data.tar.gz")
    assert (found.project, found.bucket) == ("my-project", "my-project-faces")
    assert found.notes == ("quick_start.sh: --newer is not carried over",)
    assert cloudl_folder.read_quickstart("echo hi\n") == cloudl_folder.QuickStart()


TRAIN = """#!/bin/bash
INSTANCE_NAME=$1
BUCKET_NAME=$2
WHEN=$(date +%s)
gcloud compute instances create \\
  --machine-type=n1-standard-64 --zone us-central1-b \\
  --image-family=mine --image-project=lab \\
  --accelerator=type=nvidia-tesla-t4,count=2 \\
  --metadata-from-file startup-script=start.sh \\
  --metadata SCRIPT=census.py,ROUNDS=300,OUT=$BUCKET_NAME/model,SPARE=1,API_KEY=hush \\
  --scopes=cloud-platform --preemptible --tags x \\
  $INSTANCE_NAME
"""
START = """#!/bin/bash
SCRIPT=$(curl http://metadata.google.internal/computeMetadata/v1/instance/attributes/SCRIPT -H "F: G")
ROUNDS=$(curl http://metadata.google.internal/computeMetadata/v1/instance/attributes/ROUNDS -H "F: G")
OUT=$(curl http://metadata.google.internal/computeMetadata/v1/instance/attributes/OUT -H "F: G")
gsutil cp "gs://somewhere/$SCRIPT" .
python $SCRIPT \\
  --rounds $ROUNDS
sudo shutdown -h now
"""


def test_vm_script_becomes_a_fleet_and_a_command() -> None:
    assert burst.is_it(TRAIN) and not burst.is_it(START)
    assert not burst.is_it("# gcloud compute instances create x\ngcloud compute instances create ")
    found = burst.read(TRAIN, {"start.sh": START}.get)
    fleet = {
        "backend": "gce",
        "spot": True,
        "workers": 1,
        "machine": "n1-standard-64",
        "family": "lab/mine",
        "zones": ["us-central1-b"],
        "gpu": "T4:2",
    }
    command = ["python", "census.py", "--rounds", "300"]
    assert found.project == {"command": command, "fleet": "burst", "fleets": {"burst": fleet}}
    said = "\n".join(found.notes)
    for words in ("INSTANCE_NAME is an argument", "--tags: not carried over", "metadata SPARE=1: not used"):
        assert words in said
    assert "gsutil cp" in said and "sudo shutdown -h now" in said
    assert "metadata API_KEY: its value is not carried over" in said and "hush" not in said
    assert found.hides_itself and found.hidden == ()


def test_secret_metadata_becomes_a_run_secret() -> None:
    read = (
        'K=$(curl http://metadata.google.internal/computeMetadata/v1/instance/attributes/API_KEY -H "F: G")\n'
    )
    start = START.replace("gsutil", f"{read}curl -u me:hush x\ngsutil").replace(
        "--rounds", "--key $K --rounds"
    )
    found = burst.read(TRAIN, {"start.sh": start}.get)
    assert found.project["secrets"] == ["K"] and found.hidden == ("start.sh",)
    assert found.project["command"][:2] == ["bash", "-c"] and "--key $K" in found.project["command"][2]
    said = "\n".join(found.notes)
    assert "K: its value (metadata) is not carried over: export K=... before a sweep" in said
    assert "hush" not in said + str(found.project)


def test_without_its_startup_script_the_command_is_asked_for() -> None:
    found = burst.read(TRAIN.replace("=mine", "=$3"), lambda name: None)
    assert "command" not in found.project
    assert "start.sh is not here: name the `command`" in found.notes
    assert "family: $3 is not known here; write it into the fleet" in found.notes


def test_loop_typed_by_ssh_is_run_whole() -> None:
    text = "gcloud compute instances create vm --zone z-a\n"
    text += "gcloud compute ssh vm --command 'for n in 1 2; do python train.py --seed $n; done'\n"
    found = burst.read(text, lambda name: None)
    assert found.project["command"] == [
        "bash",
        "-c",
        "for n in 1 2; do python train.py --seed $n; done\n",
    ]


TEMPLATE = """
BUCKET=gs://b
DATA=$BUCKET/data
gcloud beta compute instance-templates create survives \\
  --machine-type n1-standard-16 --restart-on-failure \\
  --metadata "repo=https://x.example/me/code.git,module=main,data=$DATA" \\
  --metadata-from-file startup-script=start.sh --zone us-central1-a --preemptible
"""
SURVIVES = """#!/bin/bash
USER_NAME=$(curl http://metadata.google.internal/computeMetadata/v1/instance/attributes/user -H "F: G")
REPO=$(curl http://metadata.google.internal/computeMetadata/v1/instance/attributes/repo -H "F: G")
MODULE=$(curl http://metadata.google.internal/computeMetadata/v1/instance/attributes/module -H "F: G")
DATA=$(curl http://metadata.google.internal/computeMetadata/v1/instance/attributes/data -H "F: G")
cd "/home/$USER_NAME"
git clone $REPO trainer
cd "/home/$USER_NAME/trainer"
sudo -u $USER_NAME python -m $MODULE --data=$DATA --when=$WHEN
if ! [ $KEEP = "true" ] ; then
  sudo shutdown -h now
fi
"""


def test_fetching_template_is_the_same_without_its_end() -> None:
    found = burst.read(TEMPLATE, {"start.sh": SURVIVES}.get)
    assert found.project["git"] == "https://x.example/me/code.git"
    assert found.project["command"] == ["bash", "-c", "python -m main --data=gs://b/data --when=$WHEN"]
    fleet = found.project["fleets"]["survives"]
    assert (fleet["machine"], fleet["zones"], fleet["spot"]) == ("n1-standard-16", ["us-central1-a"], True)
    said = "\n".join(found.notes)
    assert "$WHEN in the command is not set here" in said and "--restart-on-failure: not carried over" in said


def test_unchanged_script_without_metadata_is_noted() -> None:
    found = burst.read(TEMPLATE, {"start.sh": f"for n in 1 2; do echo; done\n{SURVIVES}"}.get)
    assert found.project["command"] == ["bash", "start.sh"]
    assert any("asks for metadata (user, repo, module, data)" in one for one in found.notes)
