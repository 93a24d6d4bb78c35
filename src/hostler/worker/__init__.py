"""The machine's side: takes runs from the store and carries them out. Standard library only."""
