"""The store protocol as a small world of states and steps, searched without gaps for broken promises."""
