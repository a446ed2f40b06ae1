"""Files are whole or not there, and a killed writer leaves nothing for ever."""

import pytest

from manyturn.envs.contract.atomic_files import clear_leftovers, replace_text

pytestmark = pytest.mark.versions


def test_a_writer_that_fails_leaves_the_old_text_and_nothing_beside_it(tmp_path):
    file = tmp_path / "a.txt"
    replace_text(file, "old")
    with pytest.raises(UnicodeEncodeError):
        replace_text(file, "new \ud800")
    assert file.read_text() == "old" and list(tmp_path.iterdir()) == [file]


def test_what_a_killed_writer_left_is_removed_and_nothing_else(tmp_path):
    kept = [tmp_path / "a.txt", tmp_path / ".hidden", tmp_path / "b.writing"]
    for file in (*kept, tmp_path / ".a.txt.123.writing"):
        file.write_text("x")
    (tmp_path / ".step_000001.writing" / "model").mkdir(parents=True)
    clear_leftovers(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted(kept)
