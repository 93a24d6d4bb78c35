"""The first failure among several ranks: when one dies, the others fail because of it. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hostler.worker.run.failure import Verdict
from hostler.worker.run.kinds import (
    CRASH,
    DONE,
    ERROR,
    EXIT_CODE,
    KILLED,
    MEMORY,
    NOT_FINISHED,
    PORT,
    RANK_LOST,
    TEMPFAIL,
)

# What a rank says when another one is gone.
_ECHO = re.compile(
    r"connection (?:closed|reset|refused|aborted)|closed by peer|broken pipe|socket closed|gloo|nccl"
    r"|distbackenderror|heartbeat (?:timeout|monitor)|unavailable|coordination service|peer|store->get"
    r"|timed? ?out|deadline",
    re.IGNORECASE,
)
_DEATHS = (KILLED, MEMORY, CRASH)


def cause(own: Verdict, others: Mapping[int, Mapping[str, object]], lost: Mapping[int, str]) -> Verdict:
    """The cause that ended the gang: our own end, another node's, or a node that is gone."""
    if own.kind == NOT_FINISHED:
        return own
    if lost:
        gone = ", ".join(f"node {node} ({host})" for node, host in sorted(lost.items()))
        return Verdict(RANK_LOST, f"{gone} is gone: its heartbeat stands still", signature="rank-lost")
    told = [(node, _verdict(node, end)) for node, end in sorted(others.items())]
    failed = [(node, verdict) for node, verdict in told if verdict.kind not in (DONE, NOT_FINISHED)]
    ends = [(0, own), *failed] if own.kind != DONE else failed
    return min(ends, key=_order)[1] if ends else own


def is_echo(verdict: Verdict) -> bool:
    """Whether it sounds as if another rank had been gone before."""
    text = f"{verdict.message} {verdict.traceback[-2000:]}"
    return verdict.kind == TEMPFAIL or (verdict.kind in (ERROR, EXIT_CODE) and bool(_ECHO.search(text)))


def with_port(verdict: Verdict) -> Verdict:
    """The port that the leader had found was taken by another before its process came to it."""
    text = f"{verdict.message}\n{verdict.traceback}".lower()
    if verdict.kind in (DONE, NOT_FINISHED) or not ("eaddrinuse" in text or "address already in use" in text):
        return verdict
    return Verdict(PORT, f"the port was taken: {verdict.message}", verdict.traceback, "port")


def _order(end: tuple[int, Verdict]) -> tuple[int, int]:
    """Killed ranks come first, then a rank's own errors, then errors that sound like another's death."""
    node, verdict = end
    return (0 if verdict.kind in _DEATHS else 2 if is_echo(verdict) else 1), node


def _verdict(node: int, end: Mapping[str, object]) -> Verdict:
    kind = str(end.get("kind") or ERROR)
    text = str(end.get("message") or kind)
    facts = {name: str(end.get(name) or "") for name in ("traceback", "error", "where")}
    return Verdict(kind, f"node {node}: {text}", signature=str(end.get("signature") or kind), **facts)
