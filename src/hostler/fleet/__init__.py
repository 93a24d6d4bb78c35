"""The submitter's side: what is sent, and who is started to work on it."""
