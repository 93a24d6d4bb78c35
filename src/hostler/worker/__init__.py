"""The machine's side: takes runs from the store and carries them out. Standard library only.

main.py               `hostler worker STORE`
options.py            its options
parent.py             keeps one worker process alive
session_name.py       names of worker processes; whose place one has taken
session.py            one worker process, from its checks to its leaving
loop.py               looks for runs until the worker may leave
held_runs.py          the runs it has: begun, measured, ended
machine.py            store, cache and clocks that all executions share
preflight.py          refuses a machine that cannot do the work
pulse.py              the worker's heartbeat, and its watch over others; patience with a silent store
compactor.py          packs ended runs into segments
archivist.py          enters ended runs into the archive
sweep_finisher.py     finds sweeps that are over, packs the rest, tells people
launch_membership.py  the worker's time in a launch, and its deadline
left_bytecode.py      leaves hostler's bytecode for machines that come later
growth.py             asks for more workers where a sweep is late
launch_end.py         releases a machine that came with its launch
machine_fate.py       decides what becomes of that machine
hand_machine.py       ends a machine for hand work once it is idle
agent.py              starts and lists workers for a fleet by ssh
reach.py              checks that a worker here would reach its store
claim/                find a run and claim it
prepare/              code, Python, data and secrets of a run
run/                  one attempt, from restore to end
process/              the user's process and its supervisor
gang/                 several workers, one model
shared/               several runs, one process
"""
