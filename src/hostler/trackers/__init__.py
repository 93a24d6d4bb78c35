"""Runs shown in TensorBoard, Weights & Biases, MLflow, Comet and trackio. The store stays the truth.

base.py              the seam: open, log, flush, close
registry.py          tools by name
feeds.py             all tools of one attempt
feed.py              one tool of one attempt, seen from outside
feed_folder.py       the folder between both sides
feeder.py            the process that feeds one tool
reach.py             whether a tool's server answers
exporting.py         past runs brought to a tool
past.py              a run read back from a tool
tensorboard.py       TensorBoard
tensorboard_past.py  runs read back from it
events.py            its event files
wire.py              Protocol Buffers, as far as needed
crc32c.py            CRC-32C
wandb.py             Weights & Biases
wandb_past.py        runs read back from it
mlflow.py            MLflow
mlflow_past.py       runs read back from it
comet.py             Comet
comet_past.py        runs read back from it
trackio.py           trackio
trackio_past.py      runs read back from it
"""
