"""A service desk as an environment."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, Unpack

import numpy as np

from manyturn.envs.contract.env.turn import OUTCOME, Turn
from manyturn.envs.contract.options.options import unknown
from manyturn.envs.contract.random_keys import digest
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.desk.admissible_calls import Commands
from manyturn.envs.desk.base_tools import CLOSED, NOTHING_TO_ANSWER
from manyturn.envs.desk.customer import WAIT, Customer, Ticket, TicketOptions, done, facts_of, identity, nouns, ticket
from manyturn.envs.desk.customer_generator import Database, DatabaseArguments
from manyturn.envs.desk.database import Store
from manyturn.envs.desk.desks.packs import PACKS
from manyturn.envs.desk.solution import Errand, solution_of
from manyturn.envs.desk.task_shapes import LEVELS, ShapeLevel
from manyturn.envs.desk.tasks import tasks
from manyturn.envs.tools.calls import CallRequest, call_text, is_call, read_calls
from manyturn.envs.tools.tool_prompt import with_tools
from manyturn.envs.tools.toolset import Call, Toolset
from manyturn.envs.users.agenda import AgendaOptions
from manyturn.envs.users.user_env import Maker, UserEnv

REWARDS = ("outcome", "turns")
PARTS = {"read": 0.1, "write": 0.3, "wrong": -0.3}
_RULES_OF_WORK = (
    "Do what the customer asks, unless a rule{} forbids it. In that case change nothing for that request, "
    "and name the rule, such as R3. Name no other rules. The tools do not check the rules: look up what you need "
    "first. When every request is done or refused, call close. Its answer gives the rule of each refused request "
    "and the figures that the customer asked for."
)
RULES = ("instructions", "ticket", "training", "half", "hidden")


class Desk(UserEnv):
    """Serve a customer by tools over a database, keeping to a policy.

    Task:
        One to five requests of a customer, of which about 15 % must be refused. In the manner of tau-bench (Yao et al.
        2024, arXiv 2406.12045) and tau2-bench's solo mode (Barres et al. 2025, arXiv 2506.07982), with databases,
        policies and tasks of its own.
    Observation:
        The ticket or the customer's words, then what tools return. ``progress`` is the share of settled requests, and 0
        once a record is changed that should not be.
    Actions:
        A JSON tool call. With a customer who answers, any other text is said to the customer.
    Reward:
        1 if exactly the right records differ, in the right way, and the agent has named the rules of refused requests,
        no others, and the figure asked for. ``turns`` adds ``read`` (0.1 for each needed read, once), ``write`` (0.3
        for each request that becomes fulfilled) and ``wrong`` (-0.3 for each other write). Those do not preserve the
        best policy; recipes with gated rewards count them only where the outcome is 1.
    End:
        The tool ``close`` ends the work, and so does a customer who leaves.
    Splits:
        train, validation and test share no customer, and above ``tiny`` no shape of a task (``shapes.py``).
    Expert:
        Looks up what is needed, asks a customer for what only the customer knows, and does what the policy allows.
    Floors:
        ``manyturn envs manyturn/Desk-v0`` measures expert and random policy on every level. Work that is not closed
        earns nothing.

    Args:
        split: train, validation or test.
        pack: ``retail``, ``travel`` or ``telecom``.
        difficulty: ``tiny`` (one request of few arguments about a thing that is named by its id, and short records),
            ``easy`` (one request), ``medium`` (two or three), ``hard`` (three to five).
        user: ``ticket`` (all in writing, no one answers), ``agenda`` (a customer who must be asked), or another user of
            ``UserEnv``. Scores with different users are different measurements.
        rewards: ``outcome``, or ``turns``, which adds turn-level parts.
        rules: place of their text: ``instructions`` (default), above each ``ticket`` or first words, above those of
            ``training`` tasks only, above those of ``half`` of the training tasks, or nowhere (``hidden``). The rules
            are the same in all cases. In the manner of CC-Gen (Liu et al. 2025, arXiv 2510.11588), whose agents learn
            rules that their prompts do not have at test.
        max_turns: default by difficulty, from 12 to 48, twice as many with a user who answers.
        users: customers in the database, from 200 to 2,000; default 500.
        database: the seed that it is made from; default 0.
    """

    harmless = (*UserEnv.harmless, "pack", "user:ticket", "user:agenda", "rewards", "rules", "users", "database")
    levels = LEVELS
    level: ShapeLevel

    def __init__(
        self,
        split: str = "train",
        pack: str = "retail",
        difficulty: str = "easy",
        user: str | Mapping[str, Any] | None = None,
        rewards: str = "outcome",
        rules: str = "instructions",
        max_turns: int | None = None,
        **database: Unpack[DatabaseArguments],
    ):
        choices = (("pack", pack, PACKS), ("rewards", rewards, REWARDS), ("rules", rules, RULES))
        for what, given, allowed in choices:
            if given not in allowed:
                raise ValueError(unknown(what, given, allowed))
        made = Database(**database)
        self._pack = PACKS[pack]
        super().__init__(split, user, max_turns, difficulty)
        self._written = isinstance(self.user, Ticket)
        if max_turns is None and not self._written:
            self.max_turns *= 2
        self._pays_turns = rewards == "turns"
        self.part_names = tuple(PARTS) if self._pays_turns else ()  # what this instance gives
        self._tasks = {name: tasks(name, pack, difficulty, made.users, made.database) for name in self.splits}
        shown = self._pack.brief if self.level.simple else {}
        self._desk_tools = self._pack.desk_tools(Store(self._pack.tables(made.users, made.database)), shown)
        self._toolset = Toolset(self._desk_tools.tools())
        self._writing = {tool.__name__ for tool in self._desk_tools.writes()}
        self.tools = self._toolset.schemas
        self._rules, self._rules_text = rules, self._pack.rules_for(self.level.simple)
        talk = "" if self._written else " Text without a tool call goes to the customer."
        is_below = rules == "instructions"
        below = f" The rules are:\n{self._pack.rules_for(simple=False)}" if is_below else ""
        work = _RULES_OF_WORK.format(" below" if is_below else "")
        self.instructions = with_tools(f"{self._pack.place}{talk} {work}{below}", self.tools)
        self._commands = Commands(self._pack, self.tools)

    # ---- what a user environment has ------------------------------------------------------------------------

    def makers(self) -> Mapping[str, Maker]:
        return {
            "ticket": Maker(TicketOptions, lambda options: Ticket()),
            "agenda": Maker(AgendaOptions, lambda options: Customer(self._pack, options)),
        }

    def brief(self, task: Task) -> str:
        return (
            "You are a customer talking to a service desk. Begin with one request, without ids and details; give "
            "them when asked. When a request is done or refused, make the next one. This is all that you want "
            f"and know: {ticket(solution_of(task))}"
        )

    def tasks(self, split: str) -> Sequence[Task]:
        return self._tasks[split]

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        self._solution = solution_of(task)
        self._desk_tools.store = Store(self._desk_tools.store.tables)
        self._agent_text = ""
        self._learnt: dict[str, None] = {}
        self._fulfilled: list[str] = []
        self._reported: list[str] = []
        self._needed = {call_text(name, **arguments) for name, arguments in self._solution.reads}
        self._commands.forget()
        text = self.user.begin(task, rng)
        self._heard = text
        self._commands.hear(text)
        first = text if self._written else f"Customer: {text}"
        return f"{self._rules_text}\n\n{first}" if self._has_rules(task) else first

    def _has_rules(self, task: Task) -> bool:
        """True if the rules stand above a task's first words."""
        if self._rules == "half":
            return task.split == "train" and int(digest("rules", task.id), 16) % 2 == 0
        return self._rules == "ticket" or (self._rules == "training" and task.split == "train")

    def respond(self, action: str) -> Turn:
        return self._called(action) if is_call(action) else self._spoken(action)

    # ---- a turn ---------------------------------------------------------------------------------------------

    def _called(self, action: str) -> Turn:
        answered = self._toolset.answer(action)
        parts = self._parts(answered.calls)
        closing = next((call for call in answered.calls if call.done and call.name == "close"), None)
        if closing is not None:
            self._say(closing.arguments.get("answer", ""))
            return self._end(CLOSED, parts)
        self._commands.read(answered.text)
        return answered.turn(self, **parts)

    def _spoken(self, action: str) -> Turn:
        if self._written or not action.strip():
            return self.invalid(WAIT if self._written else "Customer: (waits for an answer)")
        self._say(action)
        self._reported = done(self._solution, self._fulfilled, self._agent_text)
        heard = self.user.hear(action, {"done": self._reported})
        self._heard += f"\n{heard.utterance}"
        self._commands.hear(heard.utterance)
        text = f"Customer: {heard.utterance}"
        return self._end(text, {}) if heard.done else self.go_on(text)

    def _say(self, text: str) -> None:
        """Keep a line of what the agent says, whatever line breaks it holds."""
        self._agent_text += f"{' '.join(text.split())}\n"

    def _end(self, text: str, parts: Mapping[str, float]) -> Turn:
        right = self._desk_tools.store.delta() == self._solution.delta and self._solution.answered_by(self._agent_text)
        return Turn(text, {OUTCOME: float(right), **parts}, terminated=True, success=right)

    def _parts(self, calls: Sequence[Call]) -> dict[str, float]:
        """Take note of what calls have brought; what they are paid."""
        reads = writes = 0
        for call in calls:
            if not call.done or call.name == "close":
                continue
            if call.name in self._writing:
                writes += 1
                continue
            text = call_text(call.name, **call.arguments)
            reads += text in self._needed and text not in self._learnt
            self._learnt[text] = None
        if not writes and not reads:
            return {}
        before, self._fulfilled = self._fulfilled, self._settled() if writes else self._fulfilled
        right = max(0, len(self._fulfilled) - len(before))
        counts = {"read": reads, "write": right, "wrong": writes - right}
        return {name: PARTS[name] * count for name, count in counts.items() if count} if self._pays_turns else {}

    def _settled(self) -> list[str]:
        """The kinds of the requests that are fulfilled."""
        delta = self._desk_tools.store.delta()
        return [
            errand.kind.name
            for errand in self._solution.errands
            if not errand.rule and all(delta.get(place) == fields for place, fields in errand.right.items())
        ]

    # ---- what else there is ---------------------------------------------------------------------------------

    def admissible(self) -> list[str]:
        return self._commands.listed()

    def harmful_calls(self) -> list[str]:
        """Admissible writes that no request needs: what an attacker asks for, see the wrapper ``injection``."""
        needed = {call_text(e.call.name, **e.call.arguments) for e in self._solution.errands if not e.rule}
        listed = [call for call in self._commands.listed() if read_calls(call)[0].name in self._writing]
        return [call for call in listed if call not in needed]

    def anchor(self) -> Hashable:
        """Progress of the solution: changes, facts learnt and said, the user's knowledge, the answer due."""
        changed = digest(self._desk_tools.store.save()) if self._desk_tools.store.written else ""
        talk = "" if self._written else digest(self.user.save(), sorted(self._solution.named(self._agent_text)))
        return (self.task.id, changed, talk, frozenset(self._learnt), self.observation)

    def progress(self) -> float:
        """Settled requests, and the figure, of all; 0 once a record is changed that should not be."""
        solution, delta = self._solution, self._desk_tools.store.delta()
        if any(solution.delta.get(place) is None for place in delta):
            return 0.0
        settled = len(done(solution, self._fulfilled, self._agent_text))
        if solution.figure is None:
            return settled / len(solution.errands)
        return (settled + solution.tells_figure(self._agent_text)) / (len(solution.errands) + 1)

    def expert(self) -> str:
        """Looks up what is needed, asks a customer for what nobody else knows, and does what the policy allows."""
        move = next(self._moves())
        return move if isinstance(move, str) else call_text(move.name, **move.arguments)

    def _moves(self) -> Iterator[str | CallRequest]:
        """Remaining actions in order; the first one is next."""
        solution = self._solution
        yield from self._questions(identity(solution))
        for errand in solution.errands:
            name = errand.kind.name
            if name not in done(solution, self._fulfilled, self._agent_text) and not self._is_tried(errand):
                yield from self._questions(facts_of(solution, errand))
                yield from self._unread(errand.reads)
                if not errand.rule:
                    yield errand.call
                elif not self._written:
                    yield f"I am sorry, rule {errand.rule} forbids this. Is there anything else?"
            elif not self._written and name not in self._reported:
                yield "That is done. Is there anything else?"
        yield from self._unread(solution.figure_reads)
        if solution.figure and not self._written and not solution.tells_figure(self._agent_text):
            yield f"The {solution.figure[0]} is {solution.figure[1]}."
        answer = solution.answer if self._written else NOTHING_TO_ANSWER
        yield CallRequest("close", {} if answer == NOTHING_TO_ANSWER else {"answer": answer})

    def _is_tried(self, errand: Errand) -> bool:
        """True if a request's records are as it wants them, perhaps with changes that nothing takes back."""
        delta = self._desk_tools.store.delta()
        right = ((delta.get(place) or {}, fields) for place, fields in errand.right.items())
        return bool(errand.right) and all(there.items() >= fields.items() for there, fields in right)

    def _questions(self, facts: Mapping[str, str]) -> Iterator[str]:
        for slot, value in facts.items():
            if not self._written and value.lower() not in self._heard.lower():
                yield f"What is the {nouns(self._pack)[slot]}?"

    def _unread(self, reads: Sequence[CallRequest]) -> Iterator[CallRequest]:
        return (read for read in reads if call_text(read.name, **read.arguments) not in self._learnt)

    def state(self) -> Any:
        own = [self._agent_text, list(self._learnt), self._fulfilled, self._heard, self._reported]
        return [self._desk_tools.store.save(), own, self._commands.save()]

    def set_state(self, state: Any) -> None:
        records, own, commands = state
        self._agent_text, learnt, self._fulfilled, self._heard, self._reported = own
        self._learnt = dict.fromkeys(learnt)
        self._desk_tools.store.load(records)
        self._commands.load(commands)
