"""The one who seeks support: what it says at the beginning, and how it answers by how it was treated."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.talk.support.cue_lexicon import ADVISE, LISTEN, NORMALISE
from manyturn.envs.users.phrases import UNSEEN_SPLIT, Phrases
from manyturn.envs.users.protocol import NOTHING, Heard, User

PLIGHTS: Mapping[str, tuple[str, ...]] = {
    "work": ("My boss shouted at me.", "I may lose my job.", "They gave my task to a colleague."),
    "money": ("I cannot pay the rent.", "My debts grow and grow.", "The bills pile up."),
    "family": ("My parents do not speak to me.", "My sister and I had a fight.", "My father is never satisfied."),
    "studies": ("I failed an exam.", "I am behind in every course.", "University is too much for me."),
    "health": ("The doctor found something.", "The pain does not go away.", "I must go to hospital again."),
    "friends": ("My best friend avoids me.", "I have lost all my friends.", "They met without me, my friends."),
    "love": ("My partner has left me.", "Our marriage is falling apart.", "I cannot get over the breakup."),
    "home": ("I am moving and know nobody there.", "My neighbours make my life hell.", "I have to leave my flat."),
}  # fmt: skip

_HINTS = {
    LISTEN: ("I just have to say it to somebody.", "I need to get it off my chest.", "I want to be heard for once."),
    ADVISE: ("I do not know what to do.", "What would you do in my place?", "I need a way out."),
    NORMALISE: ("Is it only me?", "I must be strange.", "I feel as if I were the only one."),
}
_UNSEEN_HINTS = {
    LISTEN: ("Nobody lets me finish a sentence.", "May I pour my heart out?"),
    ADVISE: ("I am out of ideas.", "Where do I even begin?"),
    NORMALISE: ("Am I crazy?", "Everybody else copes."),
}
_SEEN: Mapping[str, tuple[str, ...]] = {
    "veil": ("As for {topic}, never mind.", "{topic} is another story, leave it.", "Let us not talk about {topic}."),
    "met": ("Yes. That does me good.", "Thank you, that is it.", "I feel lighter now.", "Yes, exactly."),
    "helped": ("That is kind.", "A little better, yes.", "Thanks, I suppose."),
    "missed": ("I know, I know.", "That is not quite it.", "Maybe. I do not know."),
    "unmoved": ("Hm.", "I see.", "If you say so."),
    "repeated": ("You said that before.", "That again.", "I heard you the first time."),
    "scattered": ("That is a lot at once.", "I cannot follow all that.", "One thing at a time, please."),
    "flooded": ("You talk a great deal.", "So many words.", "I am getting tired of this speech."),
    "parroted": ("Those were my words.", "You only repeat me.", "Yes, that is what I said."),
    "dismissed": ("That is easy to say.", "Thanks for nothing.", "You do not take me seriously."),
    "taboo": ("I told you to leave {topic} out.", "Not {topic}, please!", "Why do you bring up {topic}?"),
    "best": ("I am all right now. Thank you for everything.", "You have really helped me. Goodbye."),
    "worst": ("I should not have come. Goodbye.", "This makes it worse. I am leaving."),
}
_UNSEEN: Mapping[str, tuple[str, ...]] = {
    "veil": ("Do not ask me about {topic}.", "{topic} is none of your business."),
    "met": ("You understand me.", "That comforts me."),
    "helped": ("Well, that is something.", "Nice of you."),
    "missed": ("That is beside the point.", "You mean well."),
    "unmoved": ("Uh-huh.", "So?"),
    "repeated": ("Is that all you can say?", "An echo."),
    "scattered": ("My head is spinning.", "Slowly, slowly."),
    "flooded": ("Could you be brief?", "A whole sermon."),
    "parroted": ("Are you a parrot?", "I know what I said."),
    "dismissed": ("How cold.", "Is that so."),
    "taboo": ("{topic} was off limits.", "I asked you not to mention {topic}."),
    "best": ("I can breathe again. Bye.",),
    "worst": ("Leave me alone.",),
}
_PHRASES = Phrases(
    {**_SEEN, **{f"hint {need}": hints for need, hints in _HINTS.items()}},
    {**_UNSEEN, **{f"hint {need}": hints for need, hints in _UNSEEN_HINTS.items()}},
)


class Confidant(User):
    """Says how it feels; what it feels comes as the cue: ``reaction``, ``mood``, ``need`` and ``taboo``."""

    name = "rule"

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        params = task.params
        self._rng, self._unseen = rng, task.split == UNSEEN_SPLIT
        self._task = task
        sentences = [PLIGHTS[params["matter"]][params["plight"]]]
        if params["hints"]:
            sentences += [self._say(f"hint {params['need']}"), self._say("veil", topic=params["taboo"])]
        return " ".join(sentences)

    def hear(self, text: str, cue: Mapping[str, Any] = NOTHING) -> Heard:
        params = self._task.params
        if cue["ends"]:
            return Heard(self._say(cue["ends"]), done=True)
        sentence = self._say(cue["reaction"], topic=params["taboo"])
        if cue["reaction"] == "missed":  # what it would rather have had shines through
            sentence += " " + self._say(f"hint {params['need']}")
        return Heard(sentence)

    def save(self) -> Any:
        return None

    def load(self, state: Any) -> None:
        """Do nothing: feelings belong to the environment."""

    def _say(self, act: str, **parts: str) -> str:
        text = _PHRASES.say(act, self._rng, self._unseen, **parts)
        return text[0].upper() + text[1:]
