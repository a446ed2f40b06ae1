"""A weak actor: it takes advice that is one of its commands, and else any command."""

import random


def actor(observation, info):
    advice = observation.rpartition("Advice: ")[2]
    if advice in info["admissible"]:
        return advice
    return random.Random(info["seed"]).choice(info["admissible"])
