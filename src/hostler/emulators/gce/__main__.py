"""`python -m hostler.emulators.gce --bucket b`: an emulated Compute Engine for a terminal, until Ctrl-C.

It prints what to type in another one, so that hostler's commands there come here.
"""

from __future__ import annotations

import argparse
import shlex
import signal
import sys

from hostler.emulators.gce.control import CALLS
from hostler.emulators.gce.emulator import GceEmulator, emulator


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m hostler.emulators.gce", description=__doc__)
    parser.add_argument("--project", default="emulated", help="the only project there is (%(default)s)")
    parser.add_argument("--bucket", action="append", default=[], help="a bucket that exists; may be repeated")
    parser.add_argument(
        "--scale", type=float, default=1.0, help="emulated seconds in a real one (%(default)g)"
    )
    parser.add_argument(
        "--trace", metavar="FILE", help="at the end, what befell the machines: for hostler simulate --trace"
    )
    parser.add_argument("--sshd", action="store_true", help="machines have an sshd; needs root")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with emulator(
        arguments.project, buckets=arguments.bucket, scale=arguments.scale, sshd=arguments.sshd
    ) as gce:
        print(_greeting(gce), flush=True)
        try:
            signal.pause()
        except KeyboardInterrupt:
            print("\nall machines end", flush=True)
        finally:
            if arguments.trace:
                gce.write_trace(arguments.trace)
    return 0


def _greeting(gce: GceEmulator) -> str:
    exports = [f"export {name}={shlex.quote(value)}" for name, value in gce.environ().items()]
    example = shlex.quote('{"name": "VM", "notice": false}')
    steer = f"curl -X POST http://{gce.host}/_control/preempt -d {example}"
    project = f"export GOOGLE_CLOUD_PROJECT={shlex.quote(gce.project)}"
    return "\n".join([*exports, project, f"# {steer}", f"# other calls: {', '.join(CALLS)}"])


if __name__ == "__main__":
    sys.exit(main())
