"""Shipped for users' and backends' own tests: contract suites and emulators."""
