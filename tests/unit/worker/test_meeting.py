"""Ports that are held: they answer while others look for us, then nobody, then they are another's at once."""

from __future__ import annotations

import socket

import pytest

from hostler.worker.gang import meeting
from hostler.worker.gang.meeting import LOOPBACK, Ports


def test_a_port_that_is_held_answers_until_it_is_hushed() -> None:
    ports = Ports(2)
    try:
        for number in ports.numbers:
            assert meeting.reached([LOOPBACK], number) == {LOOPBACK: LOOPBACK}
        ports.hush()
        for number in ports.numbers:
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection((LOOPBACK, number), timeout=3)
    finally:
        ports.release()


def test_nobody_else_gets_a_port_that_is_hushed() -> None:
    ports = Ports(1)
    ports.hush()
    try:
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(("", ports.numbers[0]))
    finally:
        ports.release()


@pytest.mark.parametrize("hushed", [True, False])
def test_released_port_is_free_when_the_release_returns(hushed: bool) -> None:
    for _ in range(10):
        ports = Ports(1)
        if hushed:
            ports.hush()
        ports.release()
        with socket.socket() as other:
            other.bind(("", ports.numbers[0]))
            other.listen()
        ports.release()
