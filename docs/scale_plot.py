"""Makes docs/images/scale.svg from the simulation of request rates.

python docs/scale_plot.py
"""

from __future__ import annotations

from pathlib import Path

from hostler.analysis.plots.chart import PALETTE, Axis, Chart, Panel, Polyline
from hostler.analysis.plots.save import save
from hostler.simulate.request_rates import FLEETS, GCS, S3, BucketRates, Scale, patient, trained

PICTURE = Path(__file__).resolve().parent / "images" / "scale.svg"
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


if __name__ == "__main__":
    save(chart(), PICTURE)
