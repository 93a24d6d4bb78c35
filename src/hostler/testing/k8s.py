"""Old name of `hostler.emulators.k8s`, the stand-in for Kubernetes; kept for one version."""

from hostler.testing import moved

moved(__name__, "hostler.emulators.k8s")
