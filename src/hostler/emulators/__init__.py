"""Services on this machine, for the demo and tests. Nothing else imports them.

serving.py  the HTTP server of each
gcs/        Google Cloud Storage, with faults on demand
gce/        Google Compute Engine: machines are processes, spot VMs are preempted
k8s/        a stand-in for Kubernetes: containers are processes
"""
