"""What an environment cannot give: what a run asks for, what it is told, and what would do instead."""

from pathlib import Path
from typing import Any

GUESS = "manyturn/GuessNumber-v0"  # tells answer and progress, and lists that it pays no part but the outcome
DOORS = f"{Path(__file__).parent / 'doors.py'}:Doors"  # tells progress, and lists nothing; 85 tasks of one kind
CALENDAR = f"{Path(__file__).parent / 'appointments.py'}:Calendar"  # tells nothing
DEAD_ENDS = f"{Path(__file__).parent / 'run/step/dead_ends.py'}:DeadEnds"  # has no expert
TURN_GATE = {"name": "gated", "gates": [{"threshold": 0.5}, {"part": "turn", "threshold": -1.0}]}
TURN_WEIGHT = {"name": "part_weights", "weights": {"turn": 2.0}}
UNFIT: list[tuple[dict[str, Any], str, dict[str, Any]]] = [
    (
        {"env.id": DOORS, "credit.rewards": ["igpo"]},
        r"igpo needs .* asks for the true answer, and .*doors.py:Doors does not provide it: override answer\(\)",
        {"env.id": GUESS},
    ),
    (
        {"env.id": DEAD_ENDS, "credit.modulation": ["agentopsd"]},
        r"agentopsd needs the column 'teacher', which .*DeadEnds has no expert: .*advice = \"answer\"",
        {"env.id": GUESS},
    ),
    (
        {"env.id": DEAD_ENDS, "rollout.guidance": "hints"},
        r"rollout.guidance = 'hints' needs an expert, which .*DeadEnds does not have: override expert\(\)",
        {"env.id": GUESS},
    ),
    (
        {"env.id": CALENDAR, "rollout.guidance": {"name": "hints", "tiers": ["milestones"]}},
        r"rollout.guidance.tiers has milestones, and .*Calendar reports no progress: override .*, or give shares",
        {"rollout.guidance": "hints"},
    ),
    (
        {"env.id": DEAD_ENDS, "rollout.guidance": "critique"},
        r"rollout.guidance.critic = 'scripted' asks the expert, which .*DeadEnds .*critic = 'openai:MODEL'",
        {"rollout.guidance": {"name": "critique", "critic": "openai:MODEL"}},
    ),
    (
        {"env.id": GUESS, "warmup": {"labels": "all_actions", "noise": 0.0}},
        r"warmup\.labels = 'all_actions' has no effect where only the expert acts, .* set warmup\.noise",
        {"warmup": {"labels": "all_actions"}},
    ),
    (
        {"env.id": DEAD_ENDS, "warmup": {"labels": "expert", "noise": 0.5}},
        r"warmup.labels = 'expert' needs an expert, which .*DeadEnds does not have: override expert\(\)",
        {"env.id": GUESS},
    ),
    (
        {
            "env.id": DOORS,
            "credit": {"advantage": "gigpo", "rewards": ["opsd"]},
            "columns": [{"name": "teacher", "advice": "answer"}],
        },
        r"opsd needs the column 'teacher', which .*Doors has no answer: override answer\(\) .*advice = \"expert\"",
        {"columns": [{"name": "teacher"}]},
    ),
    (
        {"env.id": CALENDAR, "credit.rewards": ["tiers"]},
        r"tiers needs progress\(\), which .*appointments.py:Calendar does not provide: override progress\(\)",
        {"env.id": GUESS},
    ),
    (
        {"env.id": CALENDAR, "credit.advantage": {"name": "stratified", "stratum": "progress"}},
        r"stratified needs progress\(\)",
        {"env.id": GUESS},
    ),
    (
        {"env.id": GUESS, "credit.advantage": {"name": "stratified", "stratum": "tool_calls"}},
        "stratified needs the column 'tool_calls', which counts calls of tools, and .* tells agents of none",
        {"env.id": "manyturn/Search-v0"},
    ),
    (
        {
            "env.id": "manyturn/Search-v0",
            "credit.advantage": {"name": "stratified", "stratum": "tool_calls"},
            "columns": [{"name": "tool_calls", "tools": ["serch"]}],
        },
        "which counts calls of an unknown tool 'serch'; did you mean 'search'",
        {"columns": [{"name": "tool_calls", "tools": ["search"]}]},
    ),
    (
        {"env.id": GUESS, "credit.advantage": {"name": "gigpo", "similarity": 0.9}},
        r"similarity compares the texts of situations, and those of manyturn/GuessNumber-v0 have none",
        {"env.id": DOORS},
    ),
    (
        {"env.id": GUESS, "credit.rewards": ["tiers", TURN_GATE]},
        "gated names the reward part 'turn', which nothing pays: manyturn/GuessNumber-v0 and the stages before it pay "
        "outcome, tier",
        {"env.wrappers": [{"name": "turn_cost"}]},
    ),
    (
        {"env.id": GUESS, "credit.rewards": [TURN_WEIGHT]},
        "part_weights names the reward part 'turn', which nothing pays",
        {"env.id": DOORS},
    ),
    (
        {"env.id": DOORS, "curriculum": "band", "rollout.tasks": 90},
        r"curriculum band has no effect: a step plays 90 tasks, and there are 86 training tasks: lower rollout\.tasks",
        {"rollout.tasks": 80},
    ),
    (
        {"env.id": DOORS, "curriculum": "sec", "rollout.tasks": 4},
        "chooses between kinds of tasks, but the first 64 are all '': give tasks a difficulty or tags",
        {"env.id": "manyturn/Household-v0"},
    ),
    (
        {"env.id": GUESS, "curriculum": "grow"},
        r"curriculum grow varies tasks, and manyturn/GuessNumber-v0 does not: override vary\(\)",
        {"env.id": "manyturn/Maze-v0"},
    ),
    (
        {"env.id": GUESS, "roles": {"buyer": "one", "seller": "other"}},
        r"\[roles\] has no effect: an episode of manyturn/GuessNumber-v0 has one role",
        {"env.id": "manyturn/Talk-SelfPlay-v0"},
    ),
    (
        {"env.id": "manyturn/Talk-SelfPlay-v0", "roles": {"buyer": "one"}},
        "names buyer, but those who act in manyturn/Talk-SelfPlay-v0 are buyer, seller: give each a policy",
        {"roles": {"buyer": "one", "seller": "expert"}},
    ),
    (
        {"env.id": DOORS, "credit.advantage": "capo"},
        r"capo reads verdicts in the part 'judge', which nothing pays: add a section \[judge\]",
        {"judge": {}},
    ),
    (
        {"env.id": GUESS, "env.wrappers": [{"name": "turn_cost"}], "judge": {"verdicts": "episode", "part": "turn"}},
        r"judge\.part = 'turn' is a part that manyturn/GuessNumber-v0 pays: give another name",
        {"judge": {"verdicts": "episode"}},
    ),
    (
        {"env.id": DEAD_ENDS, "credit.advantage": "capo", "judge": {}},
        r"\[judge\] asks the expert, which .*DeadEnds does not have: override expert\(\) in the environment, give",
        {"judge": {"criteria": [{"name": "valid", "rule": "valid"}]}},
    ),
]
