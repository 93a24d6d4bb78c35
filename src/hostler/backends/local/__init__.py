"""Workers on this machine: background processes that outlive the terminal."""
