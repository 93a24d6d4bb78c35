from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from hostler.errors import HostError, StoreError
from hostler.remote.channel import Channel, Cut

FAR = """
import sys, threading
from hostler.errors import StoreError
from hostler.remote import service
from hostler.remote.frames import Frame

gate = threading.Event()

def echo(asked, body):
    return Frame({"n": asked.get("n")}, body[::-1])

def wait(asked, body):
    gate.wait()
    return Frame({"came": True})

def free(asked, body):
    gate.set()
    return Frame()

def refuse(asked, body):
    raise StoreError("the disk is full", "free some")

def bug(asked, body):
    return 1 / 0

handlers = {"echo": echo, "wait": wait, "free": free, "refuse": refuse, "bug": bug}
service.serve(handlers, sys.stdin.buffer, sys.stdout.buffer)
"""


@pytest.fixture
def channel() -> Iterator[Channel]:
    pipe = subprocess.PIPE
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    far = subprocess.Popen([sys.executable, "-c", FAR], stdin=pipe, stdout=pipe, env=variables)
    made = Channel(far, {})
    made.far = far  # type: ignore[attr-defined]
    yield made
    made.close()


def test_each_of_many_askers_gets_its_own_answer(channel: Channel) -> None:
    def ask(n: int) -> tuple[int, bytes]:
        answer = channel.ask("echo", b"%d" % n * 1000, timeout=20, n=n)
        return answer.header["n"], answer.body

    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(ask, range(10, 99))) == [(n, (b"%d" % n * 1000)[::-1]) for n in range(10, 99)]


def test_one_who_waits_holds_up_nobody(channel: Channel) -> None:
    waiting = channel.send("wait")
    assert channel.ask("echo", b"ab", timeout=20).body == b"ba"
    assert not waiting.done()
    channel.ask("free", timeout=20)
    assert channel.wait(waiting, 20).header["came"]


def test_a_refusal_arrives_as_what_it_was(channel: Channel) -> None:
    with pytest.raises(StoreError, match="the disk is full") as met:
        channel.ask("refuse", timeout=20)
    assert met.value.hint == "free some"
    with pytest.raises(HostError, match="ZeroDivisionError"):
        channel.ask("bug", timeout=20)
    with pytest.raises(HostError, match="does not know 'nothing'"):
        channel.ask("nothing", timeout=20)
    assert channel.ask("echo", b"ab", timeout=20).body == b"ba"


def test_everybody_who_waits_is_told_of_a_cut(channel: Channel) -> None:
    waiting = [channel.send("wait") for _ in range(3)]
    channel.far.kill()  # type: ignore[attr-defined]
    for future in waiting:
        with pytest.raises(Cut):
            channel.wait(future, 20)
    assert not channel.is_open
    with pytest.raises(Cut):
        channel.send("echo")


def test_no_answer_in_time_is_a_cut(channel: Channel) -> None:
    channel.ask("echo", timeout=20)
    with pytest.raises(Cut, match="in time"):
        channel.ask("wait", timeout=0.01)
    assert not channel.is_open


def test_hanging_up_lets_the_far_side_end_by_itself(channel: Channel) -> None:
    channel.ask("echo", timeout=20)
    channel.hang_up()
    assert channel.far.returncode == 0  # type: ignore[attr-defined]
