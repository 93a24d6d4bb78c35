"""A program that checks whether a worker started here would reach its store; prints a line if not."""

from __future__ import annotations

import sys

from hostler import settings
from hostler.errors import HostlerError
from hostler.store import open_store
from hostler.store.registry import check

PATIENCE = 15.0


def main(store: str) -> int:
    try:
        check(open_store(store, retry=min(PATIENCE, settings.timing().retry)))
    except HostlerError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
