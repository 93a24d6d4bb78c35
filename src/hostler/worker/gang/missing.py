"""The workers missing from a gang, and the reasons, in words. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from hostler.records.body import Record
from hostler.records.run.gang import GangMember, GangView
from hostler.spec.states import stop_reason

SHOWN = 8  # workers that are named
BUSY = "is busy with"


def why_not(
    seen: GangView, beats: Mapping[str, Record], leader: str, sweep: str, nodes: int, waited: float
) -> str:
    """A line naming the workers that are missing. `beats`: heartbeats of all living workers, by session."""
    came = 1 + sum(member.ready is not None for member in seen.here)
    return f"{came} of {nodes} workers joined within {waited:.0f} s: {who(seen, beats, leader, sweep, nodes)}"


def who(seen: GangView, beats: Mapping[str, Record], leader: str, sweep: str, nodes: int) -> str:
    """The workers, of so many nodes, that have not come or are not ready, with the reasons known."""
    ready = [member for member in seen.here if member.ready]
    told = [_of_member(member, beats) for member in seen.others if member not in ready]
    if 1 + len(seen.here) >= nodes:
        return "; ".join(told[:SHOWN]) or "all are ready, and begin"
    outside = _outside(seen, beats, leader)
    told += [
        f"{beat.get('host', session)} {_of_other(beat, sweep)}" for session, beat in sorted(outside.items())
    ]
    if not outside:
        told.append("no other worker is alive")
    more = f"; and {len(told) - SHOWN} more" if len(told) > SHOWN else ""
    return f"{'; '.join(told[:SHOWN])}{more}"


def busy(seen: GangView, beats: Mapping[str, Record], leader: str, sweep: str) -> int:
    """How many could come, and will when what they have to do has ended."""
    outside = _outside(seen, beats, leader).values()
    return sum(_of_other(beat, sweep).startswith(BUSY) and not beat.get("unfit") for beat in outside)


def unreached(seen: GangView, addresses: list[str], port: int) -> str:
    """The workers that reach none of the leader's addresses, or not the same one as the others."""
    deaf = [member.host for member in seen.here if member.ready and not member.ready.get("reaches")]
    where = f"{', '.join(addresses) or 'this machine'} at port {port}"
    if deaf:
        return f"{', '.join(deaf)} cannot reach {where}: a firewall? HOSTLER_PORTS names ports that are open"
    return f"no address of {where} is reached by all of {', '.join(m.host for m in seen.here)}"


def _outside(seen: GangView, beats: Mapping[str, Record], leader: str) -> dict[str, Record]:
    """The living workers that never came."""
    inside = {leader, *(member.session for member in seen.others)}
    return {session: beat for session, beat in beats.items() if session not in inside}


def _of_member(member: GangMember, beats: Mapping[str, Record]) -> str:
    if member.leaves:
        return f"{member.host} joined and had to leave: {stop_reason(str(member.leaves.get('reason')))}"
    if member.exit:
        return f"{member.host} joined and gave up ({member.exit.get('message')})"
    if member.session not in beats:
        return f"{member.host} joined and is gone"
    return f"{member.host} joined and is not ready yet"


def _of_other(beat: Record, sweep: str) -> str:
    only, runs, unfit = beat.get("only") or [], list(beat.get("runs") or {}), beat.get("unfit") or []
    if only and sweep not in only:
        return f"serves only {', '.join(only)}"
    if runs:
        return f"{BUSY} {', '.join(runs[:3])}"
    return f"does not fit: {unfit[0]}" if unfit else "is free and has not joined yet"
