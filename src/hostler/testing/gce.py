"""Old name of `hostler.emulators.gce`, the emulator of Compute Engine; kept for one version."""

from hostler.testing import moved

moved(__name__, "hostler.emulators.gce")
