"""`hostler pause`: runs save and keep their place until they are resumed."""

from __future__ import annotations

from hostler.cli import here
from hostler.cli.steer import acting
from hostler.cli.steer.acting import Result
from hostler.records.rows import Row
from hostler.records.run import control


def command(names: tuple[str, ...], store_url: str | None, as_json: bool) -> int:
    """Save runs and set them aside; hostler resume goes on with them."""
    store = here.open_here(store_url)

    def do(row: Row) -> Result:
        return acting.result(row, control.pause(store, row.key, by="hostler pause"))

    acting.hold(store, names, "paused by a person")
    return acting.report(store, acting.act(store, names, do), as_json=as_json)
