"""Whatever happens to the file, a journal gives back what was written whole, and nothing else."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from manyturn.agents.records.episode_log import Journal, JournalError

SETTINGS = {"seed": 1}
ENTRIES = [{"number": n, "text": "é" * n} for n in range(5)]


@pytest.fixture
def written(tmp_path):
    path = tmp_path / "journal.jsonl"
    with Journal(path, SETTINGS) as journal:
        for entry in ENTRIES:
            journal.append(entry)
    return path


def read(path):
    with Journal(path, SETTINGS) as journal:
        return journal.entries


def test_what_was_written_is_given_back_in_order(written):
    assert read(written) == ENTRIES


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_a_flipped_bit_costs_the_lines_it_is_in_and_no_other(tmp_path, place, bit):
    path = tmp_path / "journal.jsonl"
    path.unlink(missing_ok=True)
    with Journal(path, SETTINGS) as journal:
        for entry in ENTRIES:
            journal.append(entry)
    content = bytearray(path.read_bytes())
    head = content.index(b"\n") + 1
    content[head + int(place * (len(content) - head))] ^= 1 << bit
    path.write_bytes(content)
    found = read(path)
    # A line feed that is no more glues two lines together; the last one was torn off then.
    assert len(found) >= len(ENTRIES) - 2 and all(entry in ENTRIES for entry in found)
    assert found == [entry for entry in ENTRIES if entry in found]


@pytest.mark.parametrize("cut", [1, 2, 10, 25])
def test_after_a_torn_line_writing_goes_on_at_a_line_of_its_own(written, cut):
    written.write_bytes(written.read_bytes()[:-cut])
    with Journal(written, SETTINGS) as journal:
        assert journal.entries == ENTRIES[:-1]
        journal.append({"number": 9})
    assert read(written) == [*ENTRIES[:-1], {"number": 9}]


def test_other_settings_are_refused(written):
    with pytest.raises(JournalError, match="seed was 1 and is 2"), Journal(written, {"seed": 2}):
        pass


def test_a_journal_has_one_writer(written):
    with Journal(written, SETTINGS), pytest.raises(JournalError, match="another process"):
        read(written)


def test_what_is_appended_reaches_the_file_at_once(written):
    """A killed process must not lose what it has finished."""
    with Journal(written, SETTINGS) as journal:
        before = written.stat().st_size
        journal.append({"number": 9})
        assert written.stat().st_size > before


def test_an_empty_file_as_a_loss_of_power_leaves_it_is_begun_again(tmp_path):
    path = tmp_path / "journal.jsonl"
    path.touch()
    with Journal(path, SETTINGS) as journal:
        journal.append(ENTRIES[0])
    assert read(path) == ENTRIES[:1]
