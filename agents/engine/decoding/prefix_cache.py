"""Cache between turns: keys and values of episodes, and of prefixes that several episodes share.

A pool of pages is all there is. A reply is begun when it has the pages for its prompt and its longest reply, so that
nothing that runs can fail for want of them; pages of episodes that wait may be given up, and are computed again.
"""

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

from manyturn.agents.engine.decoding.page_pool import PAGE, PagePool
from manyturn.agents.engine.decoding.row import Row

_Begins = tuple[int, tuple[int, ...]]  # the page before, 0 for none, and the tokens of a full page


@dataclass(slots=True)
class _CacheEntry:
    """The tokens that were computed of an episode, and their pages."""

    ids: list[int]
    pages: list[int]

    def shared(self, prompt: Sequence[int]) -> int:
        """The number of the prompt's tokens that are computed; never the last one, because its logits are needed."""
        same = len(self.ids)
        if prompt[:same] != self.ids:
            pairs = enumerate(zip(self.ids, prompt, strict=False))
            same = next((i for i, (a, b) in pairs if a != b), min(same, len(prompt)))
        return min(same, len(prompt) - 1)


class Caches:
    """Keeps what was computed, by episode.

    Args:
        pool: the pages that there are.
    """

    def __init__(self, pool: PagePool):
        self._pool = pool
        self.entries: dict[Hashable, _CacheEntry] = {}  # the one that was used longest ago first
        self._full: dict[_Begins, int] = {}  # full pages by what they hold
        self._begins: dict[int, _Begins] = {}  # and the other way round
        self._coming: dict[_Begins, Row] = {}  # full pages that rows are about to compute first

    def begin(
        self, key: Hashable, row: Row, asking: Collection[Hashable] = (), *, alone: bool = False
    ) -> Literal["begun", "soon", "full"]:
        """Give a row its pages, with what is known of its prompt.

        Args:
            key: whose row it is.
            asking: episodes that wait for a reply; their pages are given up last.
            alone: True if nothing else runs, so that even those are given up.

        Returns:
            "soon" if another row is about to compute what this one begins with; "full" if there is no room now.
        """
        mine = self._useful(self.entries.pop(key, _CacheEntry([], [])), row.prompt)
        self.entries[key] = mine
        first = self._first(mine, row.prompt)
        if first is not None and first in self._coming:
            return "soon"
        need = -(-row.most // PAGE) - len(mine.pages)
        if not self._make_room(need, key, asking, alone=alone):
            return "full"
        del self.entries[key]
        row.begin(mine.pages + self._pool.take(need), len(mine.ids))
        if first is not None:
            self._coming[first] = row
        return "begun"

    def _useful(self, cached: _CacheEntry, prompt: list[int]) -> _CacheEntry:
        """The cached prefix of a prompt: its own episode's, or one that others have computed, whichever is longer."""
        same = cached.shared(prompt)
        full, part = divmod(same, PAGE)
        if part and self._pool.users(cached.pages[full]) > 1:
            same, part = full * PAGE, 0  # what is written next must not change what others read
        pages, shared = cached.pages[:full], full
        while (page := self._full.get(_begins(pages, prompt))) is not None and (len(pages) + 1) * PAGE < len(prompt):
            pages = [*pages, page]
        if len(pages) * PAGE <= same:
            pages = cached.pages[: full + bool(part)]
            if part:
                self._forget_page(pages[-1])  # its end will be written over
        else:
            same = len(pages) * PAGE
        for page in pages[shared:]:
            self._pool.share(page)
        self._release(cached.pages[shared:])
        return _CacheEntry(prompt[:same], pages)

    def _first(self, mine: _CacheEntry, prompt: list[int]) -> _Begins | None:
        """The full page that a row will compute first, if it begins at one."""
        computed = len(mine.ids)
        return _begins(mine.pages, prompt) if computed % PAGE == 0 and computed + PAGE < len(prompt) else None

    def _make_room(self, need: int, own: Hashable, asking: Collection[Hashable], *, alone: bool) -> bool:
        idle = [key for key in self.entries if key != own and key not in asking]
        # Pages that several use may come free too, but are not counted on.
        spare = sum(self._pool.users(page) == 1 for key in idle for page in self.entries[key].pages)
        if self._pool.free + spare < need and not alone:
            return False
        last = [key for key in reversed(self.entries) if key != own and key in asking] if alone else []
        for key in (*idle, *last):
            if self._pool.free >= need:
                break
            self.forget(key)
        return self._pool.free >= need

    def learnt(self, rows: Sequence[Row], before: Sequence[int]) -> None:
        """Rows have computed more than ``before``: their full pages can be shared from now on."""
        for row, computed in zip(rows, before, strict=True):
            for number in range(computed // PAGE, row.computed // PAGE):
                start, page = number * PAGE, int(row.pages[number])
                previous = int(row.pages[number - 1]) if number else 0
                begins = (previous, tuple(row.tokens(start, start + PAGE)))
                if self._full.setdefault(begins, page) == page:
                    self._begins[page] = begins
                self._coming.pop(begins, None)

    def end(self, key: Hashable, row: Row, *, keep: bool) -> None:
        """A row is over, for good or for now.

        Args:
            keep: whether its episode may go on from what was computed.
        """
        self._coming = {begins: other for begins, other in self._coming.items() if other is not row}
        pages = row.pages.tolist()
        used = -(-row.computed // PAGE) if keep else 0
        self._release(pages[used:])
        if keep:
            self.entries[key] = _CacheEntry(row.tokens(0, row.computed), pages[:used])

    def forget(self, key: Hashable) -> None:
        """Give up what is kept of an episode."""
        self._release(self.entries.pop(key).pages if key in self.entries else [])

    def clear(self) -> None:
        """Give up everything that is kept; rows that run are unaffected."""
        for key in list(self.entries):
            self.forget(key)
        self._full, self._begins = {}, {}

    def _release(self, pages: Sequence[int]) -> None:
        for page in self._pool.give_back(pages):
            self._forget_page(page)

    def _forget_page(self, page: int) -> None:
        begins = self._begins.pop(page, None)
        if begins is not None:
            del self._full[begins]


def _begins(pages: Sequence[int], tokens: Sequence[int]) -> _Begins:
    start = len(pages) * PAGE
    return pages[-1] if pages else 0, tuple(tokens[start : start + PAGE])
