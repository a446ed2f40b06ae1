"""Tools of research: search a corpus, and answer with sources."""

from manyturn.envs.search.corpus import Corpus
from manyturn.envs.tools.tool import ToolError

SHOWN = 3  # passages
MOST_SOURCES = 4
MOST_QUERY = 300  # characters
_MOST_TEXT = 2_000  # characters of a passage that are shown
_MOST_ANSWER = 300  # characters


class Research:
    """The tools of one episode, and what has come of them.

    Args:
        corpus: to be searched.
        searches: how many there may be.

    Attributes:
        queries: as they were searched for.
        passage_ids: ids of the passages that searches have shown, in the order in which they first appeared.
        given: the answer and its sources; None before.
    """

    def __init__(self, corpus: Corpus, searches: int):
        self._corpus, self._searches = corpus, searches
        self.queries: list[str] = []
        self.passage_ids: dict[str, None] = {}
        self.given: tuple[str, tuple[str, ...]] | None = None

    @property
    def left(self) -> int:
        """Searches."""
        return self._searches - len(self.queries)

    def search(self, query: str) -> str:
        """Search the passages by their words. Shows the three best matches, each after its id.

        Args:
            query: a few words, such as a name.
        """
        if not self.left:
            raise ToolError("you have no searches left: answer now")
        if len(query) > MOST_QUERY:
            raise ToolError(f"the query has {len(query):,} characters: use at most {MOST_QUERY}")
        self.queries.append(query)
        names = self._corpus.search(query, SHOWN)
        self.passage_ids |= dict.fromkeys(names)
        shown = [f"[{name}] {self._corpus.passages[name][:_MOST_TEXT]}" for name in names]
        return "\n".join([*(shown or ["No passage contains any of these words."]), f"(searches left: {self.left})"])

    def answer(self, text: str, sources: list[str]) -> str:
        """Answer the question. This ends the task.

        Args:
            text: only the answer, such as a name or a number.
            sources: ids of the passages that prove it, one for each fact; at most 4.
        """
        if len(text) > _MOST_ANSWER:
            raise ToolError(f"the answer has {len(text):,} characters: use at most {_MOST_ANSWER}")
        if len(sources) > MOST_SOURCES:
            raise ToolError(f"{len(sources)} sources: cite at most {MOST_SOURCES}")
        for name in sources:
            if name not in self.passage_ids:
                raise ToolError(f"no search has returned the passage {name!r:.40}: cite what you have read")
        self.given = (text, tuple(sources))
        return ""
