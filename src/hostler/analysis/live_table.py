"""A table in a notebook that follows what happens: one display, updated by a thread until all is over.

Plain display updates: Jupyter, VS Code and Colab all know them, and nothing has to be installed in them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from hostler.errors import HostlerError

EVERY = 2.0  # seconds between two looks


def in_notebook() -> bool:
    """Whether a kernel runs this, rather than a terminal."""
    try:
        from IPython import get_ipython
    except ModuleNotFoundError:
        return False
    return getattr(get_ipython(), "kernel", None) is not None


def show(html: Callable[[], str], goes_on: Callable[[], bool], every: float = EVERY) -> threading.Thread:
    """Display the table now, and again whenever it has changed; the thread ends with the last change."""
    from IPython.display import HTML, display

    shown = html()
    handle = display(HTML(shown), display_id=True)

    def follow() -> None:
        last, on = shown, True
        while on:
            threading.Event().wait(every)
            try:
                on = goes_on()
                now = html()
            except HostlerError:
                continue  # the store does not answer: the next look may see it
            if now != last:
                handle.update(HTML(now))
                last = now

    thread = threading.Thread(target=follow, name="hostler-table", daemon=True)
    if goes_on():
        thread.start()
    return thread
