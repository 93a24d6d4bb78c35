"""gang."""
