"""Games of textarena that are played, and the reasons against the others.

Source: the package textarena 0.7.4. Each game named here was read: it talks to nobody, runs nothing that a player
writes, draws from Python's random state alone, and ends as it says.
"""

from manyturn.envs.contract.near_names import near_names

VERSION = "0.7.4"  # of whose games this file speaks

READ = frozenset(
    """
    2048-v0-super-easy 2048-v0-easy 2048-v0 2048-v0-hard 2048-v0-very-hard 2048-v0-extreme Bandit-v0 Bandit-v0-hard
    Blackjack-v0 Blackjack-v0-long FrozenLake-v0 FrozenLake-v0-random FrozenLake-v0-hardcore GuessTheNumber-v0
    GuessTheNumber-v0-hardcore LightsOut-v0 Mastermind-v0 Mastermind-v0-hard Mastermind-v0-extreme Minesweeper-v0
    Minesweeper-v0-small Minesweeper-v0-medium Minesweeper-v0-hard PegJump-v0 Secretary-v0 Secretary-v0-long
    TowerOfHanoi-v0 TowerOfHanoi-v0-medium TowerOfHanoi-v0-hard TowerOfHanoi-v0-hardcore TowerOfHanoi-v0-extreme
    """.split()
)
# Nothing is drawn in these: they have one position to begin with.
FIXED = frozenset(name for name in READ if name.startswith(("PegJump", "TowerOfHanoi")))

_WORDS = "it downloads lists of words when it is imported"
_MODEL = "it asks a model at another address"
_WHY = {
    "Wordle": _WORDS,
    "Hangman": _WORDS,
    "WordLadder": _WORDS,
    "WordSearch": _WORDS,
    "Crosswords": _WORDS,
    "GuessWho": _MODEL,
    "TwentyQuestions": _MODEL,
    "FifteenPuzzle": "the game raises when it is won",
    "ThreeCardMonte": "a second invalid move is paid with a text",
    "Cryptarithm": "a second invalid move is paid with a text",
}


def refusal(name: str, is_known: bool) -> str | None:
    """The reason for which a game is not played, with what to do; None if it is.

    Args:
        is_known: whether the package has a game of that name.

    >>> refusal("Wordle-v0", True)
    'Wordle-v0 is not played: it downloads lists of words when it is imported'
    """
    if name in READ:
        return None
    if not is_known:
        near = near_names(name, sorted(READ), n=3)
        hint = f"did you mean {', '.join(near)}?" if near else f"there are {', '.join(sorted(READ))}"
        return f"textarena has no game {name!r}: {hint}"
    why = _WHY.get(name.partition("-v0")[0], "its code was not read here, or it has several players, which is not done")
    return f"{name} is not played: {why}"
