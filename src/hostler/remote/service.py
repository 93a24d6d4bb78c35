"""The far end of a channel: reads questions, answers each in a thread of its own, ends with its input.

A refusal travels as class, message and hint; anything else that breaks is said as a bug of the far side, and
the service goes on.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from hostler.errors import HostlerError
from hostler.remote import frames
from hostler.remote.frames import ByteSource, Frame, Sink

THREADS = 16

Handler = Callable[[dict[str, Any], bytes], Frame]


def serve(handlers: Mapping[str, Handler], source: ByteSource, sink: Sink) -> None:
    """Until the input ends; what is being done then is finished, its answer lost."""
    writing = threading.Lock()

    def answer(frame: Frame) -> None:
        done = _answer(handlers, frame)
        try:
            with writing:
                frames.write(sink, Frame({**done.header, "id": frame.header["id"]}, done.body))
        except OSError:
            pass  # nobody listens any more

    with ThreadPoolExecutor(THREADS, thread_name_prefix="answer") as pool:
        while frame := _next(source):
            pool.submit(answer, frame)


def _next(source: ByteSource) -> Frame | None:
    try:
        return frames.read(source)
    except (OSError, ValueError):
        return None


def _answer(handlers: Mapping[str, Handler], frame: Frame) -> Frame:
    handler = handlers.get(frame.header.get("op", ""))
    if handler is None:
        return _refusal(
            "HostError", f"the far side does not know {frame.header.get('op')!r}", "upgrade hostler"
        )
    try:
        return handler(frame.header, frame.body)
    except HostlerError as error:
        return _refusal(type(error).__name__, error.message, error.hint)
    except Exception as error:  # a bug here must not end what others wait for
        traceback.print_exc()
        return _refusal("HostError", f"{type(error).__name__}: {error}", "")


def _refusal(kind: str, message: str, hint: str) -> Frame:
    return Frame({"error": kind, "message": message, "hint": hint})
