"""Old name of `hostler.drill`, the drill; kept for one version."""

from hostler.testing import moved

moved(__name__, "hostler.drill")
