"""Which configuration next, and which run goes on: pure over history."""
