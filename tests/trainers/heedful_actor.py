"""A weak actor: it takes advice or a reflection that is one of its commands, and else any command."""

import random
import re


def actor(observation, info):
    advice = re.split("Advice: |Reflection: ", observation)[-1]
    if advice in info["admissible"]:
        return advice
    return random.Random(info["seed"]).choice(info["admissible"])
