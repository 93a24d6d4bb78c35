"""Workers as pods of one Indexed Job: the cluster replaces lost pods, and the Job ends by itself.

backend.py       the Backend: start, list, stop, remove
host.py          a pod as its worker sees it: its exit code steers the Job
keys.py          keys of its fleets
shape.py         image, resources, nodes and account from a fleet's keys
volumes.py       volumes of a pod
manifest.py      the Job and the Secret of a launch
text.py          a manifest as YAML for `kubectl apply`
names.py         names and labels that say whose a thing is
rbac.py          the rights that hostler needs, as a Role
boot.py          a pod's first program: brings hostler from the store
earlier_pods.py  how earlier pods of an index ended
watching.py      watches a launch until its first workers run
reasons.py       states of pods in plain words
refusals.py      refusals of the API, and what to do
removal.py       removes Jobs and Secrets
client.py        the cluster's API; the only importer of lightkube
config.py        kubeconfig files and contexts
credentials.py   keys of this machine in a form for pods
doctor.py        checks of `hostler doctor`
discovery.py     what `hostler init` finds on this machine
"""
