"""When a VM for hand work is idle."""

from __future__ import annotations

from hostler.worker.hand_machine import connected, wait_until_idle

TABLE = """  sl  local_address rem_address   st tx_queue rx_queue
   0: 00000000:0016 00000000:0000 0A 00000000:00000000
   1: 0100007F:0016 0200007F:D431 {state} 00000000:00000000
   2: 0100007F:1F90 0200007F:D432 01 00000000:00000000
"""


def test_a_login_is_a_connection_to_the_port_of_ssh() -> None:
    assert connected(TABLE.format(state="01"), 22)
    assert not connected(TABLE.format(state="06"), 22)
    assert not connected("", 22)


def test_every_use_starts_the_wait_anew() -> None:
    now, looks = [0.0], iter([False, True, False, False, False, False])

    def pause(seconds: float) -> None:
        now[0] += seconds

    wait_until_idle(40.0, lambda: next(looks), clock=lambda: now[0], pause=pause)
    assert now[0] == 60.0
