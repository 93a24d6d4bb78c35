"""Workers as pods of one Indexed Job: the cluster brings back what it loses, and the Job ends by itself."""
