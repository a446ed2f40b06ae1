"""Refusal: the reply to a client in place of an answer. It is never a reward."""

KINDS = {
    "bad_request": "the request cannot be carried out as it is",
    "no_episode": "there is no such episode, or no longer",
    "ended": "the episode has ended: begin another",
    "busy": "an earlier request of this episode is still being answered",
    "stale": "the episode has gone on since: somebody else has played a turn of it",
    "full": "as many episodes are open as there may be",
    "env_error": "the environment raised, and the episode is lost",
    "infra_error": "the environment's process is gone, and the episode is lost",
    "unscored": "the environment cannot say what the turn is worth, and the wire has no word for that",
    "closing": "the server ends",
}
OF_THE_CLIENT = frozenset({"bad_request", "no_episode", "ended", "busy", "stale"})


class Refusal(RuntimeError):
    """A request without an answer.

    Args:
        kind: one of ``KINDS``.
        text: what happened and what to do, for the client.
    """

    def __init__(self, kind: str, text: str):
        assert kind in KINDS
        super().__init__(text)
        self.kind = kind

    @property
    def is_of_client(self) -> bool:
        """True if another request would be answered."""
        return self.kind in OF_THE_CLIENT

    def again(self) -> "Refusal":
        """The same once more: an error that is raised twice would hold the frames of both."""
        return Refusal(self.kind, str(self))

    def plain(self) -> dict[str, str]:
        """As JSON values."""
        return {"kind": self.kind, "message": str(self)}
