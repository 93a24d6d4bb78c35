"""Controllers of the stand-in: each changes objects until nothing is left to change.

controllers.py  the control loop
jobs.py         the Job controller
jobtally.py     ends of pods counted, and the Job judged
jobpods.py      names and marks of a Job's pods
policy.py       podFailurePolicy
scheduler.py    the node that a pod goes to
claims.py       claims of volumes that nothing binds
eviction.py     evictions of pods
deletion.py     how an object goes
garbage.py      objects that go because others went
conditions.py   conditions of a status
events.py       events, repeated ones counted
"""
