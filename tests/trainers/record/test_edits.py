"""What a later version added to the configuration must not look like an edit by the user."""

import json

import pytest
from short_runs import short_run

from manyturn.trainers.record.config_edits import edits_since, plain

pytestmark = pytest.mark.versions


def stored(folder, config, without=(), **more):
    values = {**plain(config), **more}
    for section, name in without:
        del values[section][name]
    folder.mkdir()
    (folder / "state.json").write_text(json.dumps({"config": values}))
    return folder


def test_an_entry_that_did_not_exist_yet_is_no_edit(tmp_path):
    config = short_run()
    old = stored(tmp_path / "old", config, [("warmup", "observed"), ("rollout", "rounds")])
    assert edits_since(old, config) == {}
    changed = config.model_copy(update={"rollout": config.rollout.model_copy(update={"rounds": 2})})
    assert edits_since(old, changed) == {"rollout.rounds": (1, 2)}


def test_an_entry_that_is_gone_is_an_edit(tmp_path):
    config = short_run()
    assert edits_since(stored(tmp_path / "old", config, gone=3), config) == {"gone": (3, "unset")}


def test_nothing_is_edited_before_the_first_checkpoint():
    assert edits_since(None, short_run()) == {}
