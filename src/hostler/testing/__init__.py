"""Contract suites that a store or a backend of your own can import.

store_contract.py    every clause of the Store protocol as tests
backend_contract.py  every clause of the Backend protocol as tests
cloud_contract.py    every clause of the Cloud protocol as tests
racer.py             a process that races for keys
drill.py             old name of `hostler.drill`
gce.py               old name of `hostler.emulators.gce`
gcs.py               old name of `hostler.emulators.gcs`
k8s.py               old name of `hostler.emulators.k8s`
"""
