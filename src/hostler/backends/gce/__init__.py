"""Workers on Google Compute Engine: groups of spot VMs that finish by themselves."""
