"""Speech in two stages, very small: from notes to a spectrogram, and from the best such model to the signal.

python train.py --stage spectrogram
python train.py --stage signal --init PATH        a checkpoint folder of the first stage
"""

import argparse
import json
import os
from pathlib import Path

import numpy as np

RATE, FRAME, NOTES = 8000, 128, 24


def main():
    args = arguments()
    folder = Path(os.environ.get("HOSTLER_CHECKPOINT_DIR", "checkpoints"))
    folder.mkdir(parents=True, exist_ok=True)
    signals = np.stack([tone(note) for note in range(NOTES)])
    spectra = np.abs(np.fft.rfft(signals * np.hanning(FRAME)))
    if args.stage == "spectrogram":
        model = fit(np.eye(NOTES), spectra, args, folder / "spectrogram.npy")
    else:
        first = np.load(Path(args.init) / "spectrogram.npy")
        heard = np.eye(NOTES) @ first  # what the first model makes of each note: the second learns from that
        model = fit(heard / heard.max(), signals, args, folder / "signal.npy")
    np.save(Path(os.environ.get("HOSTLER_OUTPUT_DIR", folder)) / f"{args.stage}.npy", model)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stage", choices=["spectrogram", "signal"], required=True)
    parser.add_argument("--init", help="of the second stage: where the first one's checkpoint is")
    parser.add_argument("--lr", type=float, default=0.5)
    parser.add_argument("--steps", type=int, default=200)
    return parser.parse_args()


def tone(note):
    """A frame of a plucked string: a few overtones that die away."""
    time = np.arange(FRAME) / RATE
    pitch = 220 * 2 ** (note / 12)
    return sum(np.sin(2 * np.pi * pitch * n * time) / n for n in (1, 2, 3)) * np.exp(-30 * time)


def fit(x, y, args, path):
    """A matrix by gradient descent; goes on from the file if it is there."""
    begin, weights, saved = 0, np.zeros((x.shape[1], y.shape[1])), path.with_suffix(".state.npz")
    if saved.exists():
        state = np.load(saved)
        begin, weights = int(state["step"]), state["weights"]
    scale = np.linalg.norm(x, 2) ** 2
    for step in range(begin + 1, args.steps + 1):
        error = x @ weights - y
        weights = weights - args.lr * x.T @ error / scale
        if step % 20 == 0:
            print(json.dumps({"step": step, "error": float((error**2).mean() / (y**2).mean())}), flush=True)
            np.savez(path.with_suffix(".new.npz"), step=step, weights=weights)
            os.replace(path.with_suffix(".new.npz"), saved)
            np.save(path, weights)
    return weights


if __name__ == "__main__":
    main()
