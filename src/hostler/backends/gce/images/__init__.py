"""Images of Compute Engine, made on a temporary VM.

building.py   builds an image: makes the VM, watches it, takes its disk
temporary.py  that VM, as Compute Engine takes it
builder.py    the program that runs on it
sources.py    the image, family or VM that an image begins with
gallery.py    lists images and leftovers of builds
"""
