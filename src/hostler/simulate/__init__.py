"""Time and cost of a sweep: the real decisions on a virtual clock.

study.py    wishes, history and assumptions put together
history.py  durations and losses that a store remembers
rates.py    text to a rate of losses
times.py    text to times that vary
stock.py    windows in which a zone has run out
trace.py    a launch's events as a file
fleets.py   a fleet as a scene
scene.py    one fleet with one sweep
world.py    plays a scene through
agenda.py   the virtual clock
machine.py  one place and its machine
bundles.py  runs of large sweeps taken together
waiting.py  runs that wait, with the work they have left
launch.py   a launch while a zone has run out
weather.py  losses of machines, by chance or by a trace
outcome.py  means and intervals of many simulations
target_choice.py  fleet and size for a sweep that is to be done by a moment
savings.py  changes that would have made a launch cheaper
chart.py    time against cost as a chart
request_rates.py  fleets against the request rates of a bucket
"""
