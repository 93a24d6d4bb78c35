"""Models by name.

registry.py    models by the first word of their name
linear.py      `linear`
tiny.py        `lenet`, `vgg_D`, `resnet_D`, `wrn_D_W`
timm_model.py  `timm/NAME`
hf_model.py    `hf/causal/…` and `hf/text/…`
clip_model.py  `clip/NAME`
head.py        the last layer, begun anew
normal.py      mean and deviation of a published model
weights.py     weights from a file
unpickled.py   tensors of a pickle, as safetensors
"""
