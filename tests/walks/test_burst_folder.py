"""A folder of burst training: `hostler import train.sh` leads to a model in its bucket."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import servers
from example_world import Example
from hostler.emulators.gcs import GcsEmulator
from hostler.store import open_store

BUCKET = f"gs://{servers.BUCKET}"
TRAIN = f"""#!/bin/bash
NAME=census-burst
BUCKET={BUCKET}
gcloud compute instances create $NAME \\
  --machine-type=n1-standard-64 --zone=us-central1-b --image-family=trainer --image-project=lab \\
  --metadata CENSUS_DATA=$BUCKET/census/adult.data,MODELS=$BUCKET/models,CV_ITERATIONS=2 \\
  --metadata-from-file startup-script=startup.sh --scopes=cloud-platform --preemptible
"""
ATTRIBUTES = "http://metadata.google.internal/computeMetadata/v1/instance/attributes"
ASKED = f"$(curl {ATTRIBUTES}/{{}} -H 'Metadata-Flavor: Google')"
STARTUP = f"""#!/bin/bash
CENSUS_DATA={ASKED.format("CENSUS_DATA")}
MODELS={ASKED.format("MODELS")}
CV_ITERATIONS={ASKED.format("CV_ITERATIONS")}
python train.py --mode train --census-data-path $CENSUS_DATA \\
  --model-output-path $MODELS --cv-iterations $CV_ITERATIONS
sudo shutdown -h now
"""
BY_SSH = f"""#!/bin/bash
NAME=census-burst
BUCKET={BUCKET}
gcloud compute instances create $NAME --machine-type=n1-standard-64 --zone=us-central1-b --preemptible
gcloud compute scp --zone=us-central1-b train.py schema.json $NAME:
gcloud compute ssh $NAME --zone=us-central1-b --command "python train.py --mode train \\
  --census-data-path $BUCKET/census/adult.data --model-output-path $BUCKET/models --cv-iterations 2"
gcloud compute instances delete $NAME --quiet
"""


@pytest.fixture
def example(tmp_path: Path, gcs: GcsEmulator) -> Example:
    made = Example(tmp_path, "census")
    open_store(f"{BUCKET}/census").put("adult.data", (made.folder / "adult.sample.csv").read_bytes())
    return made


@pytest.mark.timeout(300)
@pytest.mark.parametrize("files", [{"train.sh": TRAIN, "startup.sh": STARTUP}, {"train.sh": BY_SSH}])
def test_its_script_leads_to_a_model_in_the_bucket(example: Example, files: dict[str, str]) -> None:
    for name, text in files.items():
        example.write(name, text)
    imported = example.run("import", "train.sh")
    assert imported.code == 0, imported.err
    project = (example.folder / "hostler.yaml").read_text()
    assert "machine: n1-standard-64" in project and f'"--census-data-path", "{BUCKET}' in project
    done = example.run("run", "--on", "local", "--name", "burst")
    assert done.code == 0, done.out + done.err
    [left] = [entry.key for entry in open_store(f"{BUCKET}/models").list("")]
    assert re.fullmatch(r"census-\d{8}_\d{6}", left)
    words = (
        f"--mode evaluate --census-data-path {BUCKET}/census/adult.data --model-output-path {BUCKET}/models"
    )
    judged = example.type(f"python train.py {words}")
    assert judged.code == 0 and json.loads(judged.out)["accuracy"] > 0.75


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--census-data-path {bucket}/census/none.data", "there is no gs://"),
        ("--census-data-path schema.json", "is it UCI's adult.data?"),
        ("--mode evaluate --model-output-path {bucket}/nothing", "has no census-<TIMESTAMP>"),
    ],
)
def test_what_is_missing_is_said_in_one_line(example: Example, words: str, said: str) -> None:
    answer = example.type("python train.py " + words.format(bucket=BUCKET))
    assert answer.code == 1 and said in answer.err and len(answer.err.splitlines()) == 1
