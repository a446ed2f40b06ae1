"""What a tool says instead of doing what it was asked."""


class Refusal(ValueError):
    """The call is refused; the text follows ``Error: `` in what the agent reads."""
