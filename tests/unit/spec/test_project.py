from __future__ import annotations

from pathlib import Path

from hostler.spec.project import default_project, find_project


def test_the_nearest_file_above_is_found(tmp_path: Path) -> None:
    inner = tmp_path / "a b" / "c"
    inner.mkdir(parents=True)
    (tmp_path / "hostler.yaml").touch()
    assert find_project(inner) == tmp_path / "hostler.yaml"
    (tmp_path / "a b" / "hostler.yml").touch()
    assert find_project(inner) == tmp_path / "a b" / "hostler.yml"


def test_project_search_ends_at_the_git_checkout(tmp_path: Path) -> None:
    checkout = tmp_path / "repo"
    (checkout / "src").mkdir(parents=True)
    (checkout / ".git").mkdir()
    (tmp_path / "hostler.yaml").touch()
    assert find_project(checkout / "src") is None
    (checkout / "hostler.yaml").touch()
    assert find_project(checkout / "src") == checkout / "hostler.yaml"


def test_a_folder_of_that_name_is_no_project_file(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "hostler.yaml").mkdir()
    assert find_project(tmp_path) is None


def test_a_folder_without_a_file_has_a_project_too(tmp_path: Path) -> None:
    project = default_project(tmp_path)
    assert (project.name, project.root, project.command) == (tmp_path.name, tmp_path, None)
    assert project.store == str(tmp_path / ".hostler")
    assert default_project(Path("/")).name
