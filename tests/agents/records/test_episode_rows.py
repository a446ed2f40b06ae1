"""Tables: what a row could say that was not played, and texts that no file can hold."""

import asyncio

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyturn.agents.play.concurrent_episodes import gather
from manyturn.agents.play.demonstrations.scripted_policy import Scripted
from manyturn.agents.play.episode import Ending, Episode, TurnRecord
from manyturn.agents.records.episode_rows import (
    EPISODES,
    SCHEMA_VERSION,
    RecordsError,
    episode_rows,
    read_episodes,
    read_turns,
    turn_rows,
    turn_schema,
    write_episodes,
    write_table,
    write_turns,
)
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.agents.tokens.ledger import Ledger
from manyturn.agents.tokens.usage import Usage
from manyturn.envs.contract.random_keys import generator
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.hosting.local.seats import open_seats

pytestmark = pytest.mark.versions


@pytest.fixture(scope="module")
def played():
    """Eight episodes of a policy that errs."""

    async def play():
        async with open_seats("manyturn/Maze-v0", limit=4) as seats:
            plan = [(task, EpisodeKey(3, "train/1", task.id, 0)) for task in seats.tasks("train")[:8]]
            return await gather(seats, Scripted(0.5), plan, max_turns=20)

    return asyncio.run(play())


def episode(rewards=(0.0, 0.0, 1.0), ending=Ending.COMPLETED, text="seen", ledger=None):
    turns = [
        TurnRecord(text, text, text, True, True, reward, {text: reward}, "anchor", None, (0.5, 0.25))
        for reward in rewards
    ]
    success = None if ending.is_error else True
    key = EpisodeKey(0, "evaluate", "t", 1)
    return Episode(key, Task("t", "test", {"n": 1}, "easy", (text,)), turns, ending, text, success, text, ledger)


def test_what_was_written_is_what_is_read(played, tmp_path):
    write_episodes(tmp_path / "e.parquet", played)
    write_turns(tmp_path / "t.parquet", played)
    assert read_episodes(tmp_path / "e.parquet") == episode_rows(played)
    assert read_turns(tmp_path / "t.parquet") == turn_rows(played)


def test_rows_say_what_was_played(played):
    rows, turns = episode_rows(played), turn_rows(played)
    assert [row["turns"] for row in rows] == [len(episode.turns) for episode in played]
    assert {row["ending"] for row in rows} == {"completed", "truncated"}
    assert [row["return"] for row in rows] == [float(episode.success) for episode in played]
    assert [(row["task"], row["turn"]) for row in turns] == [
        (episode.task.id, number) for episode in played for number in range(len(episode.turns))
    ]
    assert [row["action"] for row in turns] == [turn.action for episode in played for turn in episode.turns]


def test_a_policy_without_tokens_has_none_instead_of_zero(played):
    for row in episode_rows(played):
        assert row["reply_tokens"] is row["prompt_tokens"] is row["computed_tokens"] is row["cut_replies"] is None
    assert all(row["logprob_mean"] is None and row["policy_version"] is None for row in turn_rows(played))


def test_tokens_are_those_of_the_ledger_where_a_context_edits_history_too():
    ledger = Ledger()
    ledger.record([1, 2], [3, 4], [-0.5, -1.5], version=6)
    ledger.record([1, 2, 3, 4, 5], [6], [-2.0], version=7)
    ledger.record([1, 9], [6, 7, 8], [-1.0, -1.0, -4.0], version=7)
    [row], turns = episode_rows([episode(ledger=ledger)]), turn_rows([episode(ledger=ledger)])
    assert (row["prompt_tokens"], row["reply_tokens"], row["computed_tokens"]) == (2 + 5 + 2, 6, 11)
    assert row["last_prompt_tokens"] == 2 and [turn["prompt_tokens"] for turn in turns] == [2, 5, 2]
    assert [turn["reply_tokens"] for turn in turns] == [2, 1, 3]
    assert [turn["logprob_mean"] for turn in turns] == [-1.0, -2.0, -2.0]
    assert [turn["policy_version"] for turn in turns] == [6, 7, 7]


def test_what_a_server_counted_stands_in_its_turn_and_its_sum_in_the_episode():
    counted, turns = episode((0.0, 0.0, 1.0)), [Usage(10, 3, True, 0.25), None, Usage(20, 4, False, 0.5)]
    for turn, usage in zip(counted.turns, turns, strict=True):
        turn.usage = usage
    [row], rows = episode_rows([counted]), turn_rows([counted])
    assert (row["prompt_tokens"], row["reply_tokens"], row["cost"], row["cut_replies"]) == (30, 7, 0.75, 1)
    assert row["last_prompt_tokens"] == 20 and row["computed_tokens"] is None
    assert [(r["prompt_tokens"], r["reply_tokens"], r["cut"], r["cost"]) for r in rows] == [
        (10, 3, True, 0.25),
        (None, None, None, None),
        (20, 4, False, 0.5),
    ]


def test_a_part_is_summed_over_the_episode_and_no_number_is_no_sum():
    odd = episode((1.0, 2.0))
    odd.turns[0].parts, odd.turns[1].parts = {"step": 0.5, "lost": 1.0}, {"step": 0.25, "lost": float("nan")}
    assert episode_rows([odd])[0]["parts"] == {"step": 0.75, "lost": None}


def test_an_episode_that_died_in_the_environment_keeps_the_reply_that_it_died_of():
    ledger = Ledger()
    ledger.record([1, 2], [3, 4], [-0.5, -1.5], version=0)
    died = episode((), Ending.ENV_ERROR, ledger=ledger)
    assert turn_rows([died]) == [] and episode_rows([died])[0]["reply_tokens"] == 2
    nothing = episode((), Ending.ENV_ERROR, ledger=Ledger())
    assert episode_rows([nothing])[0]["prompt_tokens"] == 0


@pytest.mark.parametrize("ending", [Ending.ENV_ERROR, Ending.INFRA_ERROR, Ending.CANCELLED])
def test_an_error_never_becomes_a_return_or_a_failure(ending):
    [row] = episode_rows([episode(ending=ending)])
    assert row["success"] is None and row["return"] is None
    assert {turn["return_to_go"] for turn in turn_rows([episode(ending=ending)])} == {None}


def test_a_reward_that_is_no_number_never_becomes_a_return(tmp_path):
    odd = episode((1.0, float("nan")))
    assert episode_rows([odd])[0]["return"] is None
    write_turns(tmp_path / "t.parquet", [odd])
    assert np.isnan(read_turns(tmp_path / "t.parquet")[1]["reward"])


def test_the_return_to_go_is_what_is_still_to_come():
    assert [row["return_to_go"] for row in turn_rows([episode((1.0, -0.5, 2.0))])] == [2.5, 1.5, 2.0]


@settings(max_examples=30, deadline=None)
@given(st.text(st.characters(), max_size=8))
def test_no_text_is_lost_or_crashes_the_writer(tmp_path_factory, text):
    text += "é\x00\u2028😀"
    folder = tmp_path_factory.mktemp("records")
    write_episodes(folder / "e.parquet", [episode(text=text)])
    write_turns(folder / "t.parquet", [episode(text=text)])
    marked = "".join("\ufffd" if 0xD800 <= ord(sign) <= 0xDFFF else sign for sign in text)
    assert read_episodes(folder / "e.parquet")[0]["last"] == marked
    assert {row["observation"] for row in read_turns(folder / "t.parquet")} == {marked}


def test_a_lone_surrogate_becomes_a_replacement_mark():
    assert turn_rows([episode(text="a\ud800b")])[0]["reply"] == "a\ufffdb"


def test_columns_of_a_trainer_stand_with_their_turns(tmp_path):
    episodes, columns = [episode((1.0,)), episode((0.0, 1.0))], {"advantage": np.array([1.0, -2.0, 3.0])}
    write_turns(tmp_path / "t.parquet", episodes, columns)
    assert [row["advantage"] for row in read_turns(tmp_path / "t.parquet")] == [1.0, -2.0, 3.0]
    with pytest.raises(RecordsError, match=r"'advantage' has shape \(3,\), but there are 2 turns"):
        turn_rows(episodes[1:], columns)
    with pytest.raises(RecordsError, match="'reward' of their own"):
        turn_rows(episodes, {"reward": np.zeros(3)})


def test_no_episodes_make_a_table_without_rows(tmp_path):
    write_episodes(tmp_path / "e.parquet", [])
    write_turns(tmp_path / "t.parquet", [], {"advantage": []})
    assert read_episodes(tmp_path / "e.parquet") == read_turns(tmp_path / "t.parquet") == []


def test_a_column_that_is_missing_or_unknown_is_refused_instead_of_dropped(tmp_path):
    [row] = episode_rows([episode()])
    turns = turn_rows([episode()], {"advantage": np.zeros(3)})
    for rows, schema in (([row | {"extra": 1}], EPISODES), ([{"task": "t"}], EPISODES), (turns, turn_schema())):
        with pytest.raises(RecordsError, match="row or the schema only"):
            write_table(tmp_path / "x.parquet", rows, schema)
    for wrong in ({"task": None}, {"seed": 2**70}, {"turns": "many"}):
        with pytest.raises(RecordsError, match=r"without a value|does not fit"):
            write_table(tmp_path / "x.parquet", [row | wrong], EPISODES)
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_another_kind_is_refused(tmp_path):
    write_turns(tmp_path / "t.parquet", [episode()])
    with pytest.raises(RecordsError, match=f"holds turns of schema version {SCHEMA_VERSION}, not episodes"):
        read_episodes(tmp_path / "t.parquet")
    (tmp_path / "t.parquet").write_bytes(b"PAR1 torn")
    with pytest.raises(RecordsError, match="not an intact Parquet file"):
        read_turns(tmp_path / "t.parquet")


@pytest.mark.deep
@pytest.mark.parametrize("table", ["episodes", "turns"])
def test_a_flipped_bit_never_changes_what_is_read(played, tmp_path, table):
    file = tmp_path / f"{table}.parquet"
    write, read = (write_episodes, read_episodes) if table == "episodes" else (write_turns, read_turns)
    write(file, played)
    whole, rows, noticed = file.read_bytes(), read(file), 0
    rng = generator("flips", table)
    described = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")  # no checksum covers what follows
    for first in [0] * 150 + [described] * 150:
        place, bit = int(rng.integers(first, len(whole))), int(rng.integers(8))
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place + 1 :])
        try:
            assert read(file) == rows, f"bit {bit} of byte {place} of {len(whole)}"
        except RecordsError:
            noticed += 1
    assert noticed > 100


def test_rows_that_a_file_no_longer_counts_are_missed(played, tmp_path):
    write_turns(tmp_path / "t.parquet", played)
    table = pq.read_table(tmp_path / "t.parquet")
    pq.write_table(table.slice(0, len(table) - 1), tmp_path / "t.parquet")
    with pytest.raises(RecordsError, match="does not have the rows that were written"):
        read_turns(tmp_path / "t.parquet")
