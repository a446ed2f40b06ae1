"""The policy that says again what an evaluation recorded, which shows whether an environment still answers the same."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from manyturn.agents.play.episode import Act, Player
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.agents.tokens.ledger import Ledger
from manyturn.envs.hosting.handle.env_handle import Answer
from manyturn.envs.hosting.local.seats import Seat

Recorded = Mapping[tuple[str, int], Sequence[str]]
"""Task id and member of its group -> the actions of that episode, in order."""


class ReplayError(ValueError):
    """The recording does not fit what is played; the text says what would."""


class Replay:
    """Says recorded actions in order.

    Args:
        actions: of each episode.
        source: where they come from, for the policy's name and for messages.
    """

    blocks = True

    def __init__(self, actions: Recorded, source: str):
        self._actions, self._source = actions, source
        self.name = f"replay of {source}"

    @classmethod
    def of(cls, folder: Path) -> Self:
        """The replay of an evaluation, or of a run's.

        Raises:
            ReplayError: the folder holds no finished evaluation.
            RecordsError: its turns cannot be read.
        """
        from manyturn.agents.records.episode_rows import read_turns
        from manyturn.agents.records.folder_suggestion import near_folder
        from manyturn.agents.records.tables import table_in

        tables = [table_in(place, "turns") for place in (folder, folder / "evaluation")]
        table = next((table for table in tables if table.is_file()), None)
        if table is None:
            if not folder.exists() and (near := near_folder(folder)):
                raise ReplayError(f"there is no folder {folder}: did you mean replay:{near}?")
            raise ReplayError(
                f"{folder} holds no finished evaluation to replay: name the folder of one, replay:FOLDER, which "
                "manyturn evaluate POLICY --out FOLDER makes"
            )
        actions: dict[tuple[str, int], list[str]] = {}
        for row in read_turns(table):
            episode = actions.setdefault((row["task"], row["member"]), [])
            if row["fault"] != "cut" and row["inner"] is None:  # the environment was not asked
                episode.append(row["action"])
        return cls(actions, str(table.parent))

    def player(self, key: EpisodeKey, instructions: str) -> Player:
        actions = self._actions.get((key.task, key.member))
        if actions is None:
            raise ReplayError(
                f"{self._source} has no episode {key.member + 1} of task {key.task!r}: give its panel, "
                f"--panel {self._source}/panel.json, and no more --repeats than it has"
            )
        return _ReplayPlayer(actions, f"{self._source}, task {key.task!r}, episode {key.member + 1}")


class _ReplayPlayer:
    def __init__(self, actions: Sequence[str], place: str):
        self._actions, self._turn, self._place = actions, 0, place
        self.ledger: Ledger | None = None

    async def act(self, step: Answer, seat: Seat) -> Act:
        if self._turn == len(self._actions):
            raise ReplayError(
                f"{self._place}: the episode goes on after its {self._turn} recorded actions: the environment answers "
                "otherwise than when they were recorded, or --seed is another"
            )
        action = self._actions[self._turn]
        self._turn += 1
        return Act(action, action)

    def leave(self) -> None:
        """Nothing is kept."""
