"""A container of the stand-in for Kubernetes, seen from the cluster."""

from __future__ import annotations

import threading

from hostler.emulators.k8s.node.container import Container, Log


def test_signal_after_the_end_does_not_hide_the_end() -> None:
    log = Log(threading.Condition())
    run = Container({"folder": "/nowhere", "mounts": []}, log, lambda: None)
    with run._writing:  # it cannot be closed meanwhile
        run._process.wait()
        assert run._process.stdin is not None
        run._process.stdin.write(b"9\n")
    with log.grown:
        assert log.grown.wait_for(lambda: log.closed, 30)
    assert not run.running and run._process.stdin.closed
