"""Old name of `hostler.emulators.gcs`, the emulator of Cloud Storage; kept for one version."""

from hostler.testing import moved

moved(__name__, "hostler.emulators.gcs")
