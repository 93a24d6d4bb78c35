"""Makes images/scale.svg from a simulation of request rates, and images/readers.svg from a table of scale.md.

python docs/scale_plot.py
"""

from __future__ import annotations

import re
from pathlib import Path

from hostler.analysis.plots.chart import PALETTE, Axis, Chart, Panel, Polyline
from hostler.analysis.plots.save import save
from hostler.simulate.request_rates import FLEETS, GCS, S3, BucketRates, Scale, patient, trained

DOCS = Path(__file__).resolve().parent
PICTURE, READERS = DOCS / "images" / "scale.svg", DOCS / "images" / "readers.svg"
HEAD = "| command | 10,000 runs | 100,000 runs | 1,000,000 runs |"
COUNTS = (10_000.0, 100_000.0, 1_000_000.0)
LENGTHS = [1.0 * 2**n for n in range(13)]  # a second to more than an hour


def chart() -> Chart:
    """The share of its time that a fleet trains, over the length of a run."""
    marks = []
    for workers, runs in FLEETS[1:]:
        for rates, slow in ((S3, False), (GCS, False), (GCS, True)):
            name = f"{workers:,} workers, {rates.name}{', beats of a minute' if slow else ''}"
            shares = [100 * _share(Scale(workers, runs, length), rates, slow=slow) for length in LENGTHS]
            marks.append(Polyline(LENGTHS, shares, name, PALETTE[len(marks) % len(PALETTE)]))
    x, y = Axis("seconds of a run", log=True), Axis("% of its time that a worker trains", low=0, high=100)
    return Chart("Fleets on one prefix of a bucket", [Panel(marks, x, y)], note="100 runs for each worker")


def _share(scale: Scale, rates: BucketRates, *, slow: bool) -> float:
    return trained(patient(scale) if slow else scale, rates)


def readers() -> Chart:
    """CPU time of each command over the number of packed runs, from the table of the page."""
    table = (DOCS / "scale.md").read_text().split(HEAD)[1].split("\n\n")[0].strip().splitlines()[1:]
    marks = []
    for n, line in enumerate(table):
        name, *cells = (cell.strip(" `") for cell in line.strip("|").split("|"))
        taken = [re.match(r"([\d.]+) s", cell) for cell in cells]
        points = [(count, float(found[1])) for count, found in zip(COUNTS, taken, strict=True) if found]
        marks.append(Polyline(*map(list, zip(*points, strict=True)), name, PALETTE[n % len(PALETTE)]))
    x, y = Axis("packed runs", log=True), Axis("seconds of CPU time", log=True)
    return Chart("Commands over packed sweeps", [Panel(marks, x, y)], note="2 CPUs that had much other work")


if __name__ == "__main__":
    save(chart(), PICTURE)
    save(readers(), READERS)
