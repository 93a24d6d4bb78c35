"""Data sets by name, and the batches of a training as a pure function of seed and step.

sources.py           data sets by the first word of their name
split.py             examples of one split
order.py             examples of each step
feed.py              batches on the device
ahead.py             batches that threads read ahead of the step
chance.py            random numbers of several trainings at once
augment.py           random changes of batches
randaugment.py       RandAugment
pictures.py          pictures of one shape as bytes
encoded.py           pictures as files, wherever they lie
jpeg.py              JPEG by torchvision
lock.py              one download, however many ask
synthetic.py         `synthetic/…`
sklearn_data.py      `sklearn/NAME`
torchvision_data.py  `torchvision/NAME`
tfds_data.py         `tfds/NAME`
tfrecord.py          TFRecord files without TensorFlow
hub.py               `hf/NAME`; texts as numbers
libsvm.py            `libsvm/NAME`
libsvm_names.py      names of its sets, and their addresses
download.py          a file from the web, whole or not at all
npz.py               `npz/PATH`
folders.py           `folder/PATH`
mapped.py            `bytes/PATH`
shards.py            `tar/PATH`, `tar/URL`
tar_index.py         what a tar shard holds
"""
