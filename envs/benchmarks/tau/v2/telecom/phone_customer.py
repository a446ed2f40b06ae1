"""A customer by rules with a phone in its hands; it is no language model and does what it is told by name.

It opens with the reason for its call and tells what it knows when it is asked. Where the agent's text names one of its
tools, such as ``toggle_airplane_mode`` or ``grant_app_permission(app_name="messaging", permission="sms")``, it calls
that tool and tells what came of it: one at a time, the first that is named. Other words it does not follow. After every
change, and whenever it is told to do nothing, it looks whether its trouble is over, by the tool that shows it: then it
leaves. It also leaves when it was handed over to a person, and gives up after 8 turns in which it could do and tell
nothing. It knows nothing of the reference solution. Scores with it are not those with the benchmark's customer.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from manyturn.envs.benchmarks.tau.rule_customer import AGREES, ASKS, LONGEST, SENTENCE, CustomerOptions, first_person
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.tools.calls import call_text
from manyturn.envs.tools.tool import Schema
from manyturn.envs.users.protocol import NOTHING, Heard, User

# What the call is about -> the tool that shows whether the trouble is over, and what it then says.
_GOALS = (
    (r"\bMMS\b", "can_send_mms", r"\bcan send"),
    (r"mobile data|internet", "run_speed_test", r"\(Excellent\)"),
    (r"service", "check_status_bar", "📶"),
)
# What is asked for -> the sentences of the scenario that tell it.
_TOPICS = (
    (r"name|number|who are|identi|verif|account", r"phone number"),
    (r"where|abroad|travel|countr|location|at home", r"currently"),
    (r"refuel|\bGB\b|gigabyte|plan|pay|bill", r"willing|you accept"),
)
_ARGUMENT = re.compile(r"(?:(\w+)\s*[=:]\s*)?(.*)", re.DOTALL)


class PhoneCustomer(User):
    """Plays the customer of a telecom task by rules.

    Args:
        options: its patience.
        tools: schemas of its tools.
        writes: names of those that change something.
    """

    def __init__(self, options: CustomerOptions, tools: Sequence[Schema], writes: frozenset[str]):
        self.options, self._writes = options, writes
        self.name = "agenda" if options == CustomerOptions() else f"agenda(patience={options.patience})"
        self._parameters = {one["function"]["name"]: one["function"]["parameters"] for one in tools}
        names = "|".join(sorted(map(re.escape, self._parameters), key=len, reverse=True))
        self._named = re.compile(rf"(?<!\w)({names})(?!\w)(?:\(([^()]*)\))?")

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        scenario = task.params["scenario"]
        self._wish = first_person(scenario["reason_for_call"])
        texts = f"{scenario.get('known_info') or ''} {scenario.get('task_instructions') or ''}"
        self._facts = [one.strip() for one in SENTENCE.split(texts)]
        about = (goal for goal in _GOALS if re.search(goal[0], scenario["reason_for_call"], re.IGNORECASE))
        self._shows, self._fine = next(about, _GOALS[-1])[1:]
        self._stale, self._doing, self._named_tool, self._report = 0, "", False, list[str]()
        return f"Hello. {self._wish}"

    def hear(self, text: str, cue: Mapping[str, Any] = NOTHING) -> Heard:
        if cue.get("transferred"):
            return Heard("Thank you, I will wait. Goodbye.", done=True)
        text, named = text[:LONGEST], dict[str, str]()
        for match in self._named.finditer(text):
            named.setdefault(match[1], match[2] or "")
        self._named_tool, self._report = bool(named), [] if named else list(self._answers(text))
        self._stale = 0 if named or self._report else self._stale + 1
        if not named:
            return self._call(self._shows)
        if len(named) > 1:
            self._report.append("One thing at a time, please.")
        return self._obey(*next(iter(named.items())))

    def _obey(self, name: str, written: str) -> Heard:
        arguments = self._arguments(name, written)
        missing = [one for one in self._parameters[name].get("required", ()) if one not in arguments]
        if missing:
            return self._say(f"For {name} you must tell me: {', '.join(missing)}.")
        return self._call(name, **arguments)

    def see(self, results: Sequence[str]) -> Heard:
        did, result = self._doing, results[0]
        if did == self._shows and re.search(self._fine, result):
            return Heard(" ".join([*self._report, f"{result}\nNow it is as I want it. Thank you. Goodbye."]), done=True)
        if self._named_tool or not self._report:  # it reports a look of its own accord if it has nothing else to say
            self._report.append(result)
        return self._call(self._shows) if did in self._writes else self._say()

    def _call(self, name: str, /, **arguments: str) -> Heard:
        self._doing = name
        return Heard("", calls=(call_text(name, **arguments),))

    def _say(self, *last: str) -> Heard:
        if self._stale >= self.options.patience:
            return Heard("This does not help me. Goodbye.", done=True)
        return Heard("\n".join([*self._report, *last]) or self._wish)

    def _arguments(self, name: str, written: str) -> dict[str, str]:
        """The arguments in the brackets after a tool's name, by name or by place; other things are left out."""
        places, arguments = list(self._parameters[name]["properties"]), {}
        for place, one in enumerate(written.split(",")):
            match = _ARGUMENT.fullmatch(one.strip())
            key = match[1] if match and match[1] else places[place] if place < len(places) else ""
            value = match[2].strip(" \"'`") if match else ""
            if key in places and value:
                arguments[key] = value
        return arguments

    def _answers(self, text: str) -> Iterator[str]:
        if not ASKS.search(text):
            return
        patterns = [pattern for topic, pattern in _TOPICS if re.search(topic, text, re.IGNORECASE)]
        facts = [one for one in self._facts if any(re.search(pattern, one) for pattern in patterns)]
        yield from map(first_person, facts)
        if not facts and AGREES.search(text):
            yield "Yes, please go ahead."

    def save(self) -> Any:
        return self._stale

    def load(self, state: Any) -> None:
        self._stale = state
