"""`python -m hostler.emulators.k8s`: a stand-in for Kubernetes for a terminal, until Ctrl-C.

It prints what to type in another one, so that kubectl and hostler there come here.
"""

from __future__ import annotations

import argparse
import shlex
import signal
import sys
import tempfile
from pathlib import Path

from hostler.emulators.k8s.cluster import Cluster
from hostler.emulators.k8s.pace import Pace


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m hostler.emulators.k8s", description=__doc__)
    parser.add_argument("--nodes", type=int, default=3, help="how many, of 4 CPUs and 8 GiB (%(default)s)")
    parser.add_argument("--gpus", type=int, default=0, help="of each node (%(default)s)")
    parser.add_argument("--real-pace", action="store_true", help="wait as long as a cluster does")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with tempfile.TemporaryDirectory(prefix="hostler-k8s-") as folder:
        pace = Pace.real() if arguments.real_pace else Pace()
        with Cluster(Path(folder), nodes=(), pace=pace) as cluster:
            for number in range(1, arguments.nodes + 1):
                cluster.add_node(f"node-{number}", gpus=arguments.gpus)
            print(f"export KUBECONFIG={shlex.quote(str(cluster.kubeconfig))}", flush=True)
            try:
                signal.pause()
            except KeyboardInterrupt:
                print("\nall pods end", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
