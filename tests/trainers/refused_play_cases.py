"""Options of play that do not go together: (entries, a pattern of what is said, the change that works)."""

from typing import Any

SEVERAL = {"env": None, "envs": ["manyturn/Maze-v0", {"id": "manyturn/GuessNumber-v0", "weight": 2.0}]}

REFUSED_OF_PLAY: list[tuple[dict[str, Any], str, dict[str, Any]]] = [
    (
        {**SEVERAL, "warmup": {"trajectories": "played.jsonl"}},
        "warmup.trajectories are of one environment, and envs names several: leave it out",
        {"warmup": {}},
    ),
    (
        {**SEVERAL, "curriculum": "dump", "warmup": {"episodes": 0}},
        "weights of envs have no effect: curriculum dump chooses the environments; leave weights or the curriculum out",
        {"curriculum": "uniform"},
    ),
    (
        {**SEVERAL, "placement": {"kind": "static", "hosts": ["http://127.0.0.1:9001"]}},
        "placement.kind = 'static' has hosts play one environment, and envs names several: leave hosts out",
        {"placement": {"kind": "local"}},
    ),
    (
        {"agent": {"only_admissible": True, "format": {"name": "tagged", "think": True}}},
        r"leaves no room for the reasoning that agent\.format\.think asks for: set agent\.format\.think = false",
        {"agent": {"only_admissible": True, "format": {"name": "tagged"}}},
    ),
    (
        {"agent.show_admissible": True, "warmup": {"trajectories": "played.jsonl"}},
        "agent.show_admissible needs the admissible commands of each turn, which trajectories do not hold: leave it or",
        {"agent.show_admissible": False},
    ),
    (
        {"agent.only_admissible": True, "warmup": {"invalid": 0.2}},
        "warmup.invalid shows how to recover from invalid replies, which agent.only_admissible makes impossible",
        {"agent.only_admissible": False},
    ),
    (
        {"warmup": {"among": "vocabulary"}},
        r"warmup\.among = 'vocabulary' has no effect where replies are not limited, .* set agent\.only_admissible",
        {"warmup": {"among": "vocabulary"}, "agent": {"only_admissible": True}},
    ),
    (
        {"warmup": {"among": "vocabulary"}, "agent": {"only_admissible": True, "choices": "command"}},
        r"warmup\.among = 'vocabulary' has no effect with agent\.choices = 'command'",
        {"warmup": {}, "agent": {"only_admissible": True, "choices": "command"}},
    ),
    (
        {"warmup": {"labels": "expert", "noise": 0.0}},
        r"warmup\.labels = 'expert' has no effect where only the expert acts: set warmup\.policy_share",
        {"warmup": {"labels": "expert"}},
    ),
    (
        {"warmup": {"labels": "expert", "policy_share": 0.5}},
        r"warmup\.policy_share needs new demonstrations as the policy changes, .* set warmup\.episodes = 'stream'",
        {"warmup": {"labels": "expert", "policy_share": 0.5, "episodes": "stream"}},
    ),
    (
        {"warmup": {"episodes": "stream", "trajectories": "played.jsonl"}},
        r"warmup\.episodes = 'stream' plays demonstrations, and warmup\.trajectories has recorded ones: give a number",
        {"warmup": {"trajectories": "played.jsonl"}},
    ),
    (
        {"roles": {"a": "expert", "b": "random"}},
        r"\[roles\] gives every role to expert and random, and no policy would learn: name one",
        {"roles": {"a": "expert", "b": "mine"}},
    ),
    (
        {"roles": {"a": "one", "b": "other", "c": "past:2"}},
        r"past:2 is the past of the one policy that is trained, .* one, other: give the roles that learn one name",
        {"roles": {"a": "one", "b": "one", "c": "past:2"}},
    ),
    (
        {"roles": {"a": "one", "b": "past:2"}, "order": {"kind": "asynchronous"}},
        r"past:2 takes turns with learning, and order\.kind = 'asynchronous' .*: leave one of them out",
        {"order": {}},
    ),
    (
        {"roles": {"a": "one", "b": "other"}, "rollout": {"group": 4, "branching": {"initial": 2}}},
        "rollout.branching repeats what one policy said, .* leave one of them out",
        {"rollout": {"group": 4}},
    ),
    (
        {"rollout": {"tasks": 1, "spread_share": 0.5}},
        r"rollout\.spread_share = 0\.5 ranks a step's groups .*: raise rollout\.tasks and rollout\.group",
        {"rollout": {"tasks": 2, "spread_share": 0.5}},
    ),
    (
        {"rollout.tempering": {"target": 0.5}},
        "only the advantage arbitrary_entropy knows how to learn from: take it, or leave tempering out",
        {"credit.advantage": "arbitrary_entropy"},
    ),
    (
        {"rollout.guidance": {"name": "hints", "members": 8}},
        r"rollout\.guidance\.members = 8 leaves no attempt without a text of rollout\.group = 8: lower it",
        {"rollout.guidance": "hints"},
    ),
    (
        {"rollout.guidance": {"name": "hints", "members": 2}},
        r"rollout\.guidance\.members = 2 are fewer than its 3 levels: raise members, or give fewer levels",
        {"rollout.guidance": {"name": "hints", "members": 3}},
    ),
    (
        {"rollout.guidance": {"name": "critique", "after": 9}, "steps": 9},
        r"rollout\.guidance\.after = 9 of steps = 9: lower after, or raise steps",
        {"steps": 10},
    ),
    (
        {"rollout": {"guidance": "critique", "branching": {"initial": 2}}},
        r"rollout\.guidance and rollout\.branching do not go together: leave one of them out",
        {"rollout": {"guidance": "critique"}},
    ),
    (
        {"rollout": {"guidance": "critique"}, "roles": {"a": "one", "b": "other"}},
        r"rollout\.guidance speaks to one policy in one role, and here there are several: leave it out",
        {"rollout": {}},
    ),
    (
        {"rollout.guidance": "critique", "learner.old_logprobs": "engine"},
        r"learner\.old_logprobs = 'engine' would take its .*: set it to 'learner', or reads to 'guided'",
        {"learner.old_logprobs": "learner"},
    ),
    (
        {"rollout.guidance": "critique", "objective": "reinforce", "learner.minibatch": 128},
        r"reinforce needs samples of its own: take an objective with a ratio, such as clip, give objective\.correction",
        {"objective": {"name": "reinforce", "correction": {}}},
    ),
    (
        {"rollout.guidance": {"name": "critique", "reads": "guided"}, "credit.modulation": ["policy_shaping"]},
        r"policy_shaping needs the column '\w+', which says .* set rollout\.guidance.* with reads = \"plain\"",
        {"rollout.guidance": "critique"},
    ),
    (
        {"rollout.replay": {"members": 8}},
        r"rollout\.replay\.members = 8 leaves no attempt of rollout\.group = 8 to compare with: lower it",
        {"rollout.replay": {}},
    ),
    (
        {"rollout.replay": {"size": 4}},
        r"rollout\.replay\.per_task = 8 has no effect with size = 4: lower it, or raise size",
        {"rollout.replay": {"size": 8}},
    ),
    (
        {"rollout": {"replay": {}, "guidance": "critique"}},
        r"rollout\.replay and rollout\.guidance do not go together: leave one of them out",
        {"rollout": {"replay": {}}},
    ),
    (
        {"rollout": {"replay": {"source": "runs/a"}}, "judge": {"verdicts": "episode"}},
        r"rollout\.replay\.source begins with episodes that no judge has seen, .*: leave source out",
        {"rollout": {"replay": {}}},
    ),
    (
        {"rollout": {"replay": {}}, "roles": {"a": "one", "b": "other"}},
        r"rollout\.replay stores episodes of one policy in one role, and here there are several: leave it out",
        {"rollout": {}},
    ),
    (
        {"rollout.replay": {}, "objective": "reinforce", "learner.minibatch": 128},
        r"reinforce needs samples of the present ones: take an objective with a ratio, .* give objective\.correction",
        {"objective": {"name": "reinforce", "correction": {}}},
    ),
    (
        {"rollout.replay": {}, "credit.advantage": "riskpo"},
        r"which riskpo would take for its own: take an advantage that compares the episodes of a group, such as grpo",
        {"credit.advantage": "grpo"},
    ),
    (
        {"rollout": {"replay": {}}, "credit.advantage": "gae", "value": {}},
        r"the critic of \[value\] would learn them as its own: take an advantage without .* leave \[value\] out",
        {"rollout": {}},
    ),
    (
        {"judge": {}, "credit.advantage": "grpo"},
        r"judge\.verdicts = 'turn' pays every turn, .*: name the part 'judge' in a stage .* set verdicts to 'episode'",
        {"judge": {"verdicts": "episode"}},
    ),
    (
        {"judge": {"verdicts": "episode"}, "rollout": {"branching": {"initial": 2}}},
        r"\[judge\] would judge what a branch repeats twice, with rollout\.branching: leave one of them out",
        {"rollout": {}},
    ),
    (
        {"judge": {"verdicts": "episode"}, "roles": {"a": "one", "b": "other"}},
        r"\[judge\] judges one policy in one role, and here there are several: leave it out",
        {"roles": {}},
    ),
    (
        {"judge": {"criteria": [{"name": "right", "question": "Was it?"}]}, "credit.advantage": "capo"},
        "nothing decides criterion 'right' of the judge scripted: give rule",
        {"judge": {}},
    ),
    (
        {"judge": {"unreadable": "abstain"}, "credit.advantage": "capo"},
        "unreadable has no effect on the judge scripted: give by = 'openai:MODEL', or leave it out",
        {"judge": {}},
    ),
    (
        {"judge": {"vote": "majority"}, "credit.advantage": "capo"},
        "vote = 'majority' has no effect with votes = 1: raise votes, or leave it out",
        {"judge": {"vote": "majority", "votes": 3, "noise": 0.1}},
    ),
    (
        {"judge": {}, "credit.advantage": {"name": "capo", "process": 3.0}},
        "process 3 is not below whole 2",
        {"credit.advantage": "capo"},
    ),
    (
        {"rollout.group": 1},
        r"rollout\.group = 1 leaves gigpo nothing to compare an episode with: raise rollout\.group",
        {"credit.advantage": "reinforce_pp"},
    ),
    (
        {"sampling.temperature": 0.0},
        "sampling.temperature = 0 draws all episodes of a task alike, .*: set it to 1",
        {"sampling.temperature": 1.0},
    ),
    (
        {"rollout": {"group": 8, "branching": {"initial": 8}}},
        "initial = 8 leaves nothing of rollout.group = 8",
        {"rollout": {"group": 9, "branching": {"initial": 8}}},
    ),
    (
        {"rollout": {"max_turns": 1, "branching": {"initial": 2}}},
        "rollout.branching has no effect where rollout.max_turns = 1, .*: raise max_turns, or leave branching out",
        {"rollout": {"max_turns": 2, "branching": {"initial": 2}}},
    ),
    (
        {"rollout.horizon": {"first": 4, "by": 2, "every": 10, "last": 12}, "steps": 10},
        "every = 10 is never reached in 10 steps, .* lower it, or set rollout.max_turns",
        {"steps": 11},
    ),
    (
        {"order.kind": "asynchronous", "engine": "vllm"},
        "draws while the learner changes the weights, which engine vllm is not known to do: take .*'transformers'",
        {"engine": "transformers"},
    ),
    (
        {"order.kind": "asynchronous", "engine": {"name": "transformers", "reproducible": True}},
        "engine.reproducible = true computes in rounds that wait for the slowest of all open episodes, .* leave it out",
        {"engine": "transformers"},
    ),
    (
        {"order.kind": "asynchronous", "rollout.rounds": 2},
        "rollout.rounds = 2 plays groups for which the step's others have to end first, .*: leave rounds out",
        {"rollout.rounds": 1},
    ),
    (
        {"order.kind": "asynchronous", "rollout": {"branching": {"initial": 2}}},
        "rollout.branching forks off episodes .*: leave branching out, or leave order.kind = 'asynchronous' out",
        {"rollout": {}},
    ),
    (
        {"order.kind": "asynchronous", "rollout": {"guidance": {"name": "hints", "reads": "guided"}}},
        "rollout.guidance has later episodes .*: leave guidance out, or leave order.kind = 'asynchronous' out",
        {"rollout": {}},
    ),
    (
        {"order.kind": "asynchronous", "learner.old_logprobs": "learner"},
        "takes episodes for the present policy's, .*: set it to 'engine', or give objective.correction",
        {"objective": {"name": "clip", "correction": {}}},
    ),
    (
        {"order.kind": "asynchronous", "objective": {"name": "reinforce"}, "learner.minibatch": 128},
        "reinforce has no ratio for what earlier weights drew, .*: take an objective with one, such as clip, or give",
        {"objective": {"name": "reinforce", "correction": {}}},
    ),
    (
        {"order.kind": "asynchronous", "learner.engine_alarm": "note"},
        "learner.engine_alarm has no effect with order.kind = 'asynchronous', .*: leave it out",
        {"learner.engine_alarm": "stop"},
    ),
    (
        {"placement.kind": "static"},
        "placement.kind = 'static' needs hosts: start some with manyturn host --port N, and name their addresses",
        {"placement.hosts": ["http://127.0.0.1:9001"]},
    ),
    (
        {"placement": {"kind": "static", "hosts": ["http://127.0.0.1:9001"]}, "env.workers": 2},
        "env.workers = 2 has no effect at hosts that placement.hosts names: give --workers to manyturn host",
        {"env.workers": 0},
    ),
    (
        {"placement": {"kind": "static", "samplers": 2}},
        "placement.samplers = 2 has samplers started, with kind = 'local' or 'ray': name the addresses of those that",
        {"placement.samplers": ["http://127.0.0.1:9101"]},
    ),
    (
        {"placement": {"kind": "ray", "samplers": ["http://127.0.0.1:9101"]}},
        "placement.samplers names addresses, and with kind = 'ray' Ray places samplers: say how many, or set kind to",
        {"placement.samplers": 2},
    ),
    (
        {"placement": {"kind": "ray", "cluster": "auto", "gpus": 1}},
        "placement.gpus = 1 is of samplers: set placement.samplers as well, or leave it out",
        {"placement.samplers": 2},
    ),
    (
        {"placement": {"kind": "static", "samplers": ["http://127.0.0.1:9101"]}, "learner.lora_rank": 2},
        "learner.lora_rank = 2 learns adapters, and placement.samplers takes whole models: set it to 0",
        {"learner.lora_rank": 0},
    ),
    (
        {
            "placement": {"kind": "static", "samplers": ["http://127.0.0.1:9101"]},
            "engine": {"name": "vllm-server", "addresses": "http://127.0.0.1:8000"},
        },
        "placement.samplers has no use for engine vllm-server, whose servers are elsewhere already: name those in",
        {"engine": {"name": "transformers"}},
    ),
    (
        {
            "placement": {"kind": "static", "samplers": ["http://127.0.0.1:9101"]},
            "roles": {"a": "first", "b": "second"},
        },
        r"placement.samplers draws for one policy, and \[roles\] names several that learn: give all roles one name",
        {"roles": {"a": "first", "b": "first"}},
    ),
]
