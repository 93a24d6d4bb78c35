"""The checks of `hostler doctor`. Platforms have their own in `backends/*/doctor.py`.

this_machine.py  Python, tools, GPUs, disk, processes left behind
packages.py      versions of packages and extras
clock.py         this machine's clock, and the store's
credentials.py   credentials for clouds, by name alone
stores.py        the store: usable, in time, nothing stuck
fleets.py        machines of fleets: do they answer and reach the store
clouds.py        machines that a cloud holds and no launch needs
"""
