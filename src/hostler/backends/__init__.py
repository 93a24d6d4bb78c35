"""What starts and stops workers: one small file of differences each."""
