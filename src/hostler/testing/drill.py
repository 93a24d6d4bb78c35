"""Old name of `hostler.drill`, the drill; kept for one version."""

import sys

sys.modules[__name__] = sys.modules["hostler.drill"]
