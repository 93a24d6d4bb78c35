"""Old name of `hostler.emulators.gce`, the emulator of Compute Engine; kept for one version."""

import sys

sys.modules[__name__] = sys.modules["hostler.emulators.gce"]
