"""Relative paths that name nothing any more when a run is resumed from another folder."""

import pytest

from manyturn.trainers.recipe.config import located, parse_config

pytestmark = pytest.mark.versions


def test_paths_hold_from_any_folder(tmp_path, monkeypatch):
    (tmp_path / "hf").mkdir()
    monkeypatch.chdir(tmp_path)
    config = parse_config({"env": {"id": "doors.py:Doors"}, "model": {"name": "pretrained", "path": "hf"}})
    assert located(config).model.path == str(tmp_path / "hf")
    assert located(config).env.id == f"{tmp_path}/doors.py:Doors"
    assert located(located(config)) == located(config)


def test_names_that_are_no_paths_stay():
    config = parse_config({"env": {"id": "manyturn/Maze-v0"}, "model": {"name": "pretrained", "path": "owner/model"}})
    assert located(config) == config
