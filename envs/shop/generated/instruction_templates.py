"""Templates of customers' instructions: twelve, nine for training and its held-out tasks, three unseen."""

from collections.abc import Sequence

from manyturn.envs.contract.stable_random import Draws

# Braces stand for the wish's parts; "an" becomes "a" where a consonant follows.
TEMPLATES = (
    "{want} an {traits} {head}{options}, {limit}.",
    "{want} an {head} that is {traits}{options}, {limit}.",
    "{want} an {head}{options}, {limit}. it must be {traits}.",
    "{want} an {head}, {traits}{options}, {limit}.",
    "{limit}, {want} an {traits} {head}{options}.",
    "{want} an {head} {limit}, {traits}{options}.",
    "please help me: {want} an {traits} {head}{options}, {limit}.",
    "{want} an {head}. it has to be {traits}{options}, {limit}.",
    "{want} something {traits}: an {head}{options}, {limit}.",
)
UNSEEN = (
    "my old {head} broke. the next one should be {traits}{options}, {limit}.",
    "is there an {head} {limit}{options}? {traits} would be right.",
    "an {head} as a present{options}: {traits}, {limit}.",
)
_WANTS = ("i want", "i need", "find me", "i am looking for", "get me", "buy me", "i would like")
_LIMITS = (
    "under {} dollars",
    "for less than {} dollars",
    "for at most {} dollars",
    "not above {} dollars",
    "and price lower than {} dollars",
)
_OPTIONS = (" with {} {}", " in {} {}", ", {}: {}")
_VOWELS = tuple("aeiou")


def phrase(
    draws: Draws,
    templates: Sequence[str],
    head: str,
    attributes: Sequence[str],
    options: Sequence[tuple[str, str]],
    limit: int,
) -> str:
    """An instruction in one of the templates; whatever it says, it says all of it.

    >>> phrase(Draws(1), TEMPLATES[:1], "rug", ["tufted", "shaggy"], [("color", "red")], 40)
    'get me a tufted and shaggy rug in color red, under 40 dollars.'
    """
    phrase = draws.pick(_OPTIONS)
    text = draws.pick(templates).format(
        want=draws.pick(_WANTS),
        head=head,
        traits=_listed(attributes),
        options=" and".join(phrase.format(name, value) for name, value in options),
        limit=draws.pick(_LIMITS).format(limit),
    )
    words = text.replace(" and, ", ", and ").split(" ")
    following = [*words[1:], ""]
    return " ".join(
        "a" if word == "an" and not after.startswith(_VOWELS) else word
        for word, after in zip(words, following, strict=True)
    )


def _listed(items: Sequence[str]) -> str:
    """
    >>> _listed(["red"]), _listed(["red", "soft", "light"])
    ('red', 'red, soft and light')
    """
    return " and ".join(part for part in (", ".join(items[:-1]), items[-1]) if part)
