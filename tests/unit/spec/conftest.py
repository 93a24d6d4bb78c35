"""Property tests here have no time limit per example: a busy machine is not a wrong answer."""

from hypothesis import HealthCheck, settings

settings.register_profile("spec", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("spec")
