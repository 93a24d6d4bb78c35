"""What to run, as frozen data; files and command lines to data. No I/O but reading those files."""
