from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostler.errors import NewerFormatError
from hostler.spec.job import (
    FORMAT,
    Checkpointing,
    DataItem,
    Job,
    Limits,
    MetricSource,
    PythonEnv,
    Resources,
    Source,
    from_json,
    to_json,
)
from hostler.spec.tracking import Tracking

text = st.text(max_size=6)
maybe = st.none() | text
number = st.floats(allow_nan=False, allow_infinity=False)
words = st.lists(text, max_size=3).map(tuple)
value = st.recursive(
    st.none() | st.booleans() | st.integers() | number | text,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(text, inner, max_size=2),
    max_leaves=4,
)
jobs = st.builds(
    Job,
    name=text,
    command=words,
    title=text,
    style=st.sampled_from(["flags", "none"]),
    resume=words,
    resume_whole=st.booleans(),
    resume_else=st.lists(words, max_size=2).map(tuple),
    setup=words,
    python=st.builds(PythonEnv, requirements=maybe, venv=maybe),
    env=st.dictionaries(text, text, max_size=2),
    secrets=words,
    metric=maybe,
    resources=st.builds(Resources, cpus=st.none() | number, gpus=number, memory=st.none() | st.integers()),
    limits=st.builds(Limits, time=st.none() | number, start=number, failures=st.integers()),
    checkpoint=st.builds(Checkpointing, every=number, keep=st.integers(), keep_every=number),
    data=st.lists(st.builds(DataItem, name=text, path=maybe, run=words, out=maybe), max_size=2).map(tuple),
    outputs=words,
    metrics=st.builds(MetricSource, json_lines=st.booleans(), pattern=maybe),
    trackers=st.lists(
        st.builds(Tracking, kind=text, options=st.dictionaries(text, text, max_size=2)), max_size=2
    ).map(tuple),
    tags=words,
    source=st.builds(Source, snapshot=maybe, git=maybe, dirty=st.booleans()),
    priority=st.integers(),
    runs=st.lists(st.dictionaries(text, value, max_size=3), max_size=3).map(tuple),
)


@given(jobs)
@settings(max_examples=60)
def test_a_job_survives_its_record(job: Job) -> None:
    assert from_json(json.loads(json.dumps(to_json(job)))) == job


def test_unknown_keys_of_the_same_format_are_left_alone() -> None:
    record: dict[str, Any] = to_json(Job(name="a", command=("x",)))
    record["later"] = 1
    record["limits"]["later"] = 2
    assert from_json(record) == Job(name="a", command=("x",))


def test_a_newer_record_is_refused() -> None:
    with pytest.raises(NewerFormatError, match="upgrade"):
        from_json({**to_json(Job(name="a", command=("x",))), "format": FORMAT + 1})


def test_run_ids_sort_by_index_and_change_with_the_parameters() -> None:
    job = Job(name="a", command=("x",), runs=tuple({"i": i} for i in range(12)))
    ids = [job.run_id(i) for i in range(job.count)]
    assert ids == sorted(ids)
    other = Job(name="a", command=("x",), runs=({"i": 5},))
    assert other.run_id(0) != ids[0]


@pytest.mark.parametrize(
    ("name", "title", "called"),
    [
        ("rates-u-3ce7c1", "rätes ü", "rätes ü"),  # a sweep file's own words
        ("train-8308bd", "train", "train-8308bd"),  # else all runs of a script would be called the same
        ("fast", "train", "fast"),
        ("fast", "", "fast"),
    ],
)
def test_job_is_called_by_its_words_or_name(name: str, title: str, called: str) -> None:
    assert Job(name=name, command=("x",), title=title).called == called
