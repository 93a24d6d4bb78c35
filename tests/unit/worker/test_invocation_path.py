from __future__ import annotations

from pathlib import Path

from worker_world import World


def test_projects_pythonpath_comes_first_and_the_library_stays_reachable(
    world: World, tmp_path: Path
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "own.py").write_text("word = 'mine'")
    script = "import hostler, own\nprint(own.word, hostler.__version__)\n"
    job = world.submit(script, env={"PYTHONPATH": str(tmp_path / "mine")})
    assert world.work() == 0
    assert world.state(job).state == "done"
    assert "mine 0." in world.log(job)
