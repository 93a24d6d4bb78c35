"""`hostler push`: a trained model brought to where others find it.

card.py     the model card: parameters, metrics, curves, provenance
targets.py  places that take a folder of files: a hub, a bucket, a folder; alone imports huggingface_hub
"""
