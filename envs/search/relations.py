"""Relations of entities and their phrases: the vocabulary of the generated world."""

from typing import NamedTuple

FIGURE = "number"
"""Kind of what is no entity but a figure."""


class Relation(NamedTuple):
    """A link from a subject to one object.

    Attributes:
        name: unique within the kind.
        kind: of the subject.
        object: kind of the object, or ``FIGURE``.
        phrases: what the object is called in a question, with the subject in the braces.
        sentences: how a passage says it; ``{who}`` is the subject and ``{what}`` the object.
        passage: which of the subject's passages says it.
    """

    name: str
    kind: str
    object: str
    phrases: tuple[str, ...]
    sentences: tuple[str, ...]
    passage: str = "main"


PROFESSIONS = {
    "composer": ("opera", "symphony"),
    "novelist": ("novel",),
    "painter": ("painting",),
    "playwright": ("play",),
    "engineer": (),
    "physician": (),
    "botanist": (),
    "astronomer": (),
    "historian": (),
    "merchant": (),
}
"""Profession -> the kinds of works that it makes."""

INSTITUTES = ("Observatory", "College", "Museum", "Printing House", "Botanical Garden", "Conservatory")

RELATIONS = (
    Relation(
        *("birthplace", "person", "town"),
        ("the birthplace of {}", "the native town of {}"),
        ("{who} was born in {what}.", "It was in {what} that {who} was born.", "{who} came from {what}."),
        "life",
    ),
    Relation(
        *("birth", "person", FIGURE),
        ("the year of birth of {}", "the birth year of {}"),
        ("The year of birth was {what}.", "The parish register gives {what} as the year of birth."),
        "life",
    ),
    Relation(
        *("guardian", "person", "person"),
        ("the guardian of {}", "the person who raised {}"),
        ("The guardian of {who} was {what}.", "{who} was raised by {what}."),
        "life",
    ),
    Relation(
        *("teacher", "person", "person"),
        ("the teacher of {}", "the person who taught {}"),
        ("{who} was taught by {what}.", "{who} learnt the craft from {what}."),
        "career",
    ),
    Relation(
        *("workplace", "person", "institute"),
        ("the workplace of {}", "the institution that employed {}"),
        ("{who} worked at {what}.", "For many years {what} employed {who}."),
        "career",
    ),
    Relation(
        *("creator", "work", "person"),
        ("the creator of {}", "the person who created {}"),
        ("{who} was created by {what}.", "{what} spent four winters on {who}."),
    ),
    Relation(
        *("premiere", "work", "town"),
        ("the town of the first presentation of {}", "the town that saw the first presentation of {}"),
        ("It was first presented in {what}.", "The public first saw it in {what}."),
    ),
    Relation(
        *("dedicatee", "work", "person"),
        ("the dedicatee of {}", "the person named in the dedication of {}"),
        ("It is dedicated to {what}.", "The dedication names {what}."),
    ),
    Relation(
        *("completion", "work", FIGURE),
        ("the year of completion of {}", "the year that saw the completion of {}"),
        ("It was completed in {what}.", "The last page is dated {what}."),
    ),
    Relation(
        *("founder", "institute", "person"),
        ("the founder of {}", "the person who founded {}"),
        ("{who} was founded by {what}.", "The founder of {who} was {what}."),
    ),
    Relation(
        *("seat", "institute", "town"),
        ("the seat of {}", "the town that houses {}"),
        ("Its seat is {what}.", "It stands in the old quarter of {what}."),
    ),
    Relation(
        *("founding", "institute", FIGURE),
        ("the founding year of {}", "the year that saw the founding of {}"),
        ("Its doors opened in {what}.", "The charter is dated {what}."),
    ),
    Relation(
        *("river", "town", "river"),
        ("the river of {}", "the river that flows through {}"),
        ("{who} lies on {what}.", "Through {who} flows {what}."),
    ),
    Relation(
        *("architect", "town", "person"),
        ("the architect of the town hall of {}", "the person who planned the town hall of {}"),
        ("The town hall was planned by {what}.", "{what} was the architect of the town hall."),
    ),
    Relation(
        *("charter", "town", FIGURE),
        ("the year of the town charter of {}", "the year that saw the town charter of {}"),
        ("It has been a chartered town since {what}.", "The town charter was granted in {what}."),
    ),
    Relation(
        *("source", "river", "mountain"),
        ("the mountain at the source of {}", "the mountain that gives rise to {}"),
        ("{who} rises on {what}.", "The source of {who} is on {what}."),
    ),
    Relation(
        *("surveyor", "river", "person"),
        ("the surveyor of {}", "the person who surveyed {}"),
        ("It was surveyed by {what}.", "The first survey was made by {what}."),
    ),
    Relation(
        *("length", "river", FIGURE),
        ("the length in kilometres of {}",),
        ("Its length is {what} kilometres.", "It runs for {what} kilometres."),
    ),
    Relation(
        *("climber", "mountain", "person"),
        ("the first climber of {}", "the person who first climbed {}"),
        ("{who} was first climbed by {what}.", "The first climber of {who} was {what}."),
    ),
    Relation(
        *("height", "mountain", FIGURE),
        ("the height in metres of {}",),
        ("The height of {who} is {what} metres.", "{who} is {what} metres high."),
    ),
)
BY_KIND = {kind: tuple(r for r in RELATIONS if r.kind == kind) for kind in {relation.kind for relation in RELATIONS}}
