"""Checks of Compute Engine for `hostler doctor`; its fleets are asked one by one."""

from __future__ import annotations

EXTRA = "Google's VMs"  # what hostler[gce] is installed for
CREDENTIALS = "google"  # whose credentials its fleets take
