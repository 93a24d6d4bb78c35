"""A real Hydra script under a worker: its parameters arrive, its folder is kept with the run."""

from __future__ import annotations

from pathlib import Path

from cli_world import World

SCRIPT = """
import json
import hydra

@hydra.main(version_base=None, config_path=None, config_name="config")
def main(config):
    print(json.dumps({"step": 1, "lr": config.lr, "width": config.model.width}), flush=True)
    assert config.note == "it's [two], words", config.note

if __name__ == "__main__":
    main()
"""
CONFIG = "lr: 0.5\nnote: ''\nmodel: {width: 8}\n"
PROJECT = "name: h\ncommand: python train.py --config-dir conf\nstyle: hydra\n"


def test_parameters_arrive_and_the_run_folder_is_the_output_folder(tmp_path: Path) -> None:
    here = World(tmp_path)
    try:
        (here.folder / "conf").mkdir()
        here.write("conf/config.yaml", CONFIG)
        here.write("hostler.yaml", PROJECT)
        here.write("train.py", SCRIPT)
        answer = here.run("run", "--json", "lr=0.125", "model.width=64", "note=it's [two], words")
        assert answer.code == 0, answer.err
        [row] = answer.json
        assert (row["metrics"]["lr"], row["metrics"]["width"]) == (0.125, 64.0)
        pulled = here.run("pull", row["name"], "--to", str(tmp_path / "got"))
        assert pulled.code == 0, pulled.err
        [config] = (tmp_path / "got").rglob("config.yaml")
        assert "width: 64" in config.read_text()
    finally:
        here.close()
