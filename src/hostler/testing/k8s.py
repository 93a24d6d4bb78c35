"""Old name of `hostler.emulators.k8s`, the stand-in for Kubernetes; kept for one version."""

import sys

sys.modules[__name__] = sys.modules["hostler.emulators.k8s"]
