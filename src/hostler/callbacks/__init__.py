"""Runs of hostler's in the loops of other libraries, imported on use.

Each logs, saves where its library's loop can go on exactly, and leaves after a stop request.

hydra.py         Hydra: a script as a function that returns what its main returned
keras.py         Keras: weights, optimiser and random states between two epochs
lightgbm.py      LightGBM: the booster after each round
lightning.py     Lightning: its checkpoint and the random states after each epoch
sklearn.py       scikit-learn estimators, through pickle, if asked for
transformers.py  Hugging Face's Trainer: its checkpoints in the run's folder
xgboost.py       XGBoost: the booster after each round
"""
