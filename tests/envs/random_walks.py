"""Walks through an environment that lists its commands, for tests that compare what several of them come to."""

from hypothesis import strategies as st

from manyturn.envs.contract.env.text_env import TextEnv

WALK = st.lists(st.integers(0, 999), max_size=30)


def walk(env: TextEnv, choices: list[int]) -> list[tuple]:
    """Admissible commands, and for numbers of 700 and above the expert's, until the episode ends."""
    record = []
    for choice in choices:
        listed = env.admissible()
        record.append(env.step(env.expert() if choice >= 700 else listed[choice % len(listed)]))
        if record[-1][2] or record[-1][3]:
            break
    return record


def ended(record: list[tuple]) -> bool:
    return bool(record) and (record[-1][2] or record[-1][3])
