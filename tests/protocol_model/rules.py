"""The rules of the store protocol, each of which can be switched off.

With all of them on, no search finds a broken promise. `scenarios.py` holds, for each rule, a small world
in which a promise breaks without it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace


@dataclass(frozen=True)
class Rules:
    # the log
    put_if_absent: bool = True  # a log entry is created, never written over
    settle_by_token: bool = True  # "exists already" and lost answers are settled by reading the key back
    settle_before_next: bool = True  # no append moves to k+1 before it knows who has k
    retry_same_token: bool = True  # a repeated put carries the token of the first
    redecide_after_loss: bool = True  # a lost append is decided anew from the log, not sent to the next k
    claim_fences: bool = True  # a holder that finds a later claim gives up
    end_is_log_entry: bool = True  # only the log ends a run; the copy under ends/ decides nothing
    reopen_needs_end: bool = True  # retry and resume are for runs that have ended
    # who may be taken over, and who must stay
    unseen_beat_is_still: bool = True  # a claim whose heartbeat was never seen counts as standing still
    new_session_each_start: bool = True  # a restarted worker beats under a new name
    late_reads_head: bool = True  # a holder whose beat is late looks for a later claim before it writes
    stays_while_held: bool = True  # a worker leaves only when every run has ended
    # checkpoints
    commit_last: bool = True  # files first, COMMIT after them
    commit_first_on_delete: bool = True  # a deletion takes COMMIT away before the files
    newest_by_attempt_then_step: bool = True  # the newest COMMIT: highest attempt, then highest step
    vanished_is_not_damage: bool = True  # a checkpoint that goes away while it is restored: choose again
    keep_later_attempts: bool = True  # an attempt never deletes what a later one saved
    keep_until_own: bool = True  # it deletes earlier attempts' once it has `keep` good ones itself
    # metrics
    metrics_before_commit: bool = True  # COMMIT follows the metrics up to its step
    chain_reading: bool = True  # readers follow the chain back from the last attempt
    first_fragment_names_source: bool = True  # an attempt's first fragment names where it went on from
    ender_names_source: bool = True  # also when the attempt only ends a run it found finished
    # ends
    finished_commit_ends: bool = True  # who finds a finished COMMIT appends the end and starts nothing
    stop_seen_by_taker: bool = True  # a stop request outlives the attempt it was meant for
    # the watch
    watch_restarts_after_gap: bool = True  # two reads over a quarter of the lease apart start it anew
    own_clock: bool = True  # a watch compares stamps of the watcher's clock alone
    stamp_before_send: bool = True  # a read has one stamp, from before it was sent, however late it is judged
    # gangs
    yields_to_older: bool = True  # a leader that finds an older one forming gives its own run back
    go_when_full: bool = True  # the leader says go when all have come
    go_names_members: bool = True  # only who is named in the go starts, and nobody joins after it
    releases_at_timeout: bool = True  # who has waited long enough gives the run back
    releases_when_rank_lost: bool = True  # a rank whose beat stands still ends the attempt
    leaves_with_leader: bool = True  # a rank leaves when the leader's beat stands still, or the log says so
    commit_after_parts: bool = True  # COMMIT follows the parts of all ranks
    leader_alone_ends: bool = True  # only the leader writes into the log
    # packs
    seal_before_delete: bool = True  # the originals go after the seal, never before
    pause_before_delete: bool = True  # they go when no look from before the seal holds any more
    pack_hides_late_writes: bool = True  # what a pack covers is read from there alone
    looks_after_create: bool = True  # who creates an entry after its look got old looks again
    later_entries_count: bool = True  # entries after the packed ones are read from their own objects
    packs_ended_alone: bool = True  # a run that has not ended is not packed
    log_read_first: bool = True  # a packer reads the log before the points
    seal_follows_what_was_read: bool = True  # a packer that another was faster than begins anew
    drops_older_packs_alone: bool = True  # a pack that no seal names goes if it is older than the newest seal

    def without(self, name: str) -> Rules:
        return replace(self, **{name: False})


def names() -> tuple[str, ...]:
    return tuple(f.name for f in fields(Rules))
