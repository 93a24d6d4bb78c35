"""clouDL's Manager on runs of hostler's: one trial is one run. Scripts import it from `hostler.manager`."""
