"""Runs shown in tracking tools: TensorBoard, Weights & Biases, MLflow, Comet. The store stays the truth."""
