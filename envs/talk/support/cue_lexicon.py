"""Lexicon of listening, advising, normalising and topics: the words that the rules look for.

Each line of a kind of support is a sentence with its cue between asterisks; ``{topic}`` is what it is about.
"""

import re
from collections.abc import Iterable, Mapping

LISTEN, ADVISE, NORMALISE, DISMISS = "listen", "advise", "normalise", "dismiss"
NEEDS = (LISTEN, ADVISE, NORMALISE)

_SENTENCES: Mapping[str, tuple[str, ...]] = {
    LISTEN: (
        "*tell me more* about {topic}.",
        "*how did you feel* when that happened with {topic}?",
        "*i am listening*, take your time about {topic}.",
        "*it sounds as if* {topic} hurts you.",
        "*what was the worst* of it with {topic}?",
        "*i hear how* much {topic} weighs on you.",
        "*what went through your mind* about {topic}?",
        "*that must be hard*, all of this with {topic}.",
        "*go on*, what else about {topic}?",
        "*i can see why* {topic} troubles you.",
    ),
    ADVISE: (
        "*you could try* a small first step with {topic}.",
        "*what about asking* somebody who knows {topic}?",
        "*one thing that helps* with {topic} is a list.",
        "*my advice is* to sleep on {topic}.",
        "*have you thought of* a plan for {topic}?",
        "*it may help to* write down what you want of {topic}.",
        "*i suggest* that you speak openly about {topic}.",
        "*a good start would be* to sort out {topic} tomorrow.",
        "*perhaps you should* set a limit with {topic}.",
        "*the next step could be* a talk about {topic}.",
    ),
    NORMALISE: (
        "*many people* go through this with {topic}.",
        "*you are not alone* with {topic}.",
        "*anyone would* feel like that about {topic}.",
        "*it is normal* to struggle with {topic}.",
        "*lots of us* know this from {topic}.",
        "*that happens to* most of us with {topic}.",
        "*nobody finds it easy*, all of this with {topic}.",
        "*it is only human* to worry about {topic}.",
        "*others feel the same* about {topic}.",
        "*there is nothing wrong with you*, {topic} is hard for everyone.",
    ),
    DISMISS: (
        "*calm down*, {topic} is nothing.",
        "*get over it*, {topic} will pass.",
        "*do not be silly* about {topic}.",
        "*others have it worse* than you with {topic}.",
        "*it is your own fault*, all of this with {topic}.",
    ),
}
CUES: Mapping[str, tuple[str, ...]] = {
    kind: tuple(line.split("*")[1] for line in lines) for kind, lines in _SENTENCES.items()
}
TOPICS: Mapping[str, tuple[str, ...]] = {
    "work": ("work", "job", "boss", "office", "colleague", "colleagues"),
    "money": ("money", "rent", "debt", "debts", "bills"),
    "family": ("family", "mother", "father", "parents", "sister", "brother"),
    "studies": ("studies", "exam", "exams", "university", "course"),
    "health": ("health", "illness", "doctor", "pain", "hospital"),
    "friends": ("friends", "friend", "friendship"),
    "love": ("love", "partner", "marriage", "breakup", "girlfriend", "boyfriend"),
    "home": ("home", "flat", "neighbour", "neighbours", "moving"),
}
_WORD = re.compile(r"[a-z']+")
_TOPIC_OF = {word: topic for topic, words in TOPICS.items() for word in words}
_CUE = {kind: re.compile(rf"\b(?:{'|'.join(map(re.escape, cues))})\b") for kind, cues in CUES.items()}


def sentence(kind: str, cue: str, topic: str) -> str:
    """The sentence of a cue about a topic."""
    line = _SENTENCES[kind][CUES[kind].index(cue)]
    text = line.replace("*", "").format(topic=topic)
    return text[0].upper() + text[1:]


def words_of(text: str) -> list[str]:
    """Words in lower case."""
    return _WORD.findall(text.lower())


def cues_in(words: Iterable[str]) -> dict[str, set[str]]:
    """The cues in a text, by kind."""
    text = " ".join(words)
    matches = {kind: set(pattern.findall(text)) for kind, pattern in _CUE.items()}
    return {kind: cues for kind, cues in matches.items() if cues}


def topics_in(words: Iterable[str]) -> set[str]:
    """The topics that words belong to."""
    return {_TOPIC_OF[word] for word in words if word in _TOPIC_OF}
