"""Old name of `hostler.emulators.gcs`, the emulator of Cloud Storage; kept for one version."""

import sys

sys.modules[__name__] = sys.modules["hostler.emulators.gcs"]
