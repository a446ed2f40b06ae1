"""Reads household problems from PDDL and from ALFWorld's ``game.tw-pddl`` files, and writes them as PDDL."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from manyturn.envs.household.problem import KNIVES, STATIONS, Goal, Problem, bits
from manyturn.envs.household.text import GRAMMARS, Grammar

_TOKEN = re.compile(r"[()]|[^\s()]+")
_SENTENCE = re.compile(r"Your task is to: *(.+?)(?=\"|\n|$)")
_HELP = re.compile(r'"help\.feedback".*?"rhs": "(.*?)"', re.DOTALL)
_TRAITS = {
    "pickupable": "pickupable",
    "cleanable": "cleanable",
    "heatable": "heatable",
    "coolable": "coolable",
    "sliceable": "sliceable",
    "toggleable": "toggleable",
    "isreceptacleobject": "vessel",
}
_STATES = {"isclean": "clean", "ishot": "hot", "iscool": "cool", "issliced": "sliced", "istoggled": "toggled"}
_GOAL_KINDS = {"isclean": "clean", "ishot": "heat", "iscool": "cool", "istoggled": "light"}


class GameError(ValueError):
    """A file that is not a household problem; the message says what to do."""


def read_expression(text: str, source: str = "PDDL text") -> list[Any]:
    """The one s-expression of ``text`` as nested lists of lower-case words; comments start with ``;``."""
    stack: list[list[Any]] = [[]]
    for token in _TOKEN.findall(re.sub(r";[^\n]*", "", text).lower()):
        if token == "(":
            stack.append([])
        elif token == ")":
            done = stack.pop()
            if not stack:
                raise GameError(f"{source}: one ')' too many; is the file complete and unchanged?")
            stack[-1].append(done)
        else:
            stack[-1].append(token)
    if len(stack) != 1 or len(stack[0]) != 1 or not isinstance(stack[0][0], list):
        raise GameError(f"{source}: parentheses do not close; is the file complete and unchanged?")
    return stack[0][0]


def read_problem(text: str, sentence: str | None = None, agent: str | None = None, source: str = "text") -> Problem:
    """The problem that PDDL text describes.

    Args:
        text: a PDDL problem of the ``alfred`` domain.
        sentence: the goal in words; default: a comment ``; Your task is to: …``, else made from the goal.
        agent: which agent to keep if there are several; default the first that is declared.
        source: what error messages call the text.
    """
    expression = read_expression(text, source)
    parts = {p[0]: p[1:] for p in expression if isinstance(p, list) and p}
    if "problem" not in parts or not {":objects", ":init", ":goal"} <= set(parts):
        mend = "give a problem file, not the domain" if "domain" in parts else "give a PDDL problem or a game.tw-pddl"
        raise GameError(f"{source}: not a PDDL problem with objects, init and goal: {mend}")
    agents = _declared(parts[":objects"], "agent")
    keep = agent.lower() if agent else (agents[0] if agents else None)
    if keep not in agents:
        raise GameError(f"{source}: no agent {agent!r}; it declares {', '.join(agents) or 'none'}")
    others = set(agents) - {keep}
    facts: dict[str, list[list[str]]] = defaultdict(list)
    for fact in parts[":init"]:
        if isinstance(fact, list) and fact[0] != "=" and others.isdisjoint(fact):
            facts[fact[0]].append(fact[1:])
    goal = _read_goal(parts[":goal"], source)
    match = _SENTENCE.search(text)
    task_text = match[1].strip() if match else goal.sentence()
    return _build(facts, goal, task_text if sentence is None else sentence, source)


def read_game(text: str, agent: str | None = None, source: str = "text") -> tuple[Problem, Grammar]:
    """Problem and grammar of the text of a ``game.tw-pddl`` file (JSON), or of a PDDL problem."""
    if text.lstrip()[:1] != "{":
        return read_problem(text, None, agent, source), GRAMMARS["move"]
    try:
        game = json.loads(text)
    except json.JSONDecodeError as error:
        raise GameError(f"{source}: not a game.tw-pddl: {error}; download the file again") from None
    missing = {"pddl_problem", "grammar"} - set(game)
    if missing:
        raise GameError(f"{source}: no {' and no '.join(sorted(missing))} in it: give ALFWorld's game.tw-pddl")
    match = _SENTENCE.search(game["grammar"])
    return read_problem(game["pddl_problem"], match and match[1].strip(), agent, source), _read_grammar(game["grammar"])


def load_game(path: Path, agent: str | None = None) -> tuple[Problem, Grammar]:
    """Problem and grammar of a file."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise GameError(f"{path}: cannot be read: {error}") from None
    return read_game(text, agent, str(path))


def _read_grammar(text: str) -> Grammar:
    """The grammar variant that a game file carries."""
    kind = GRAMMARS["put" if "put {o} in/on {r}" in text else "move"]
    help_text = _HELP.search(text)
    return Grammar(
        kind.put,
        kind.putting,
        by_location="arrive at {lend.name}" in text,
        help=help_text[1].replace("\\n", "\n").lstrip("\n") if help_text else None,
    )


def _declared(words: list[str], kind: str) -> list[str]:
    """Names declared with this type in a typed list ``a b - kind c - other``."""
    names, open_names, words = [], [], list(words)
    for i, word in enumerate(words):
        if i and words[i - 1] == "-":
            names += open_names if word == kind else []
            open_names = []
        elif word != "-":
            open_names.append(word)
    return names


def _atoms(expression: Any) -> Iterable[list[str]]:
    """All predicates of a formula, outermost first."""
    if expression and all(isinstance(part, str) for part in expression):
        yield expression
        return
    for part in expression:
        if isinstance(part, list):
            yield from _atoms(part)


def _read_goal(expression: Any, source: str) -> Goal:
    atoms = [atom for atom in _atoms(expression) if not atom[0].startswith("?")]
    names = {atom[0] for atom in atoms}
    if names & {"issliced", "inreceptacleobject"}:
        raise GameError(f"{source}: goals about slices or movable receptacles are not part of ALFWorld: leave it out")
    kind = next((k for name, k in _GOAL_KINDS.items() if name in names), "two" if "=" in names else "put")
    types = {atom[1]: atom[2] for atom in atoms if atom[0] == "objecttype"}
    if kind == "light":
        objects = {types.get(atom[2]) for atom in atoms if atom[0] == "holds"}
        targets = {types.get(atom[1]) for atom in atoms if atom[0] == "istoggled"}
    else:
        objects = {types.get(atom[1]) for atom in atoms if atom[0] == "inreceptacle"}
        targets = {atom[2] for atom in atoms if atom[0] == "receptacletype"}
    if len(objects) != 1 or len(targets) != 1 or None in objects | targets:
        raise GameError(f"{source}: this goal is none of ALFWorld's six kinds: leave the file out")
    return Goal(kind, str(objects.pop()).removesuffix("type"), str(targets.pop()).removesuffix("type"))


def _names(entities: Iterable[str]) -> dict[str, str]:
    """Mangled identifier -> name. Within a class numbers go down as identifiers go up, as ALFWorld counts them."""
    count: dict[str, int] = defaultdict(int)
    classes = {}
    for entity in sorted(entities):
        first, bar, _ = entity.partition("_bar_")
        classes[entity] = name = first + "basin" if bar and "basin" in entity else first
        if bar:
            count[name] += 1
    names = {}
    for entity, name in classes.items():
        if "_bar_" in entity:
            names[entity] = f"{name} {count[name]}"
            count[name] -= 1
    return names


def _build(facts: dict[str, list[list[str]]], goal: Goal, sentence: str, source: str) -> Problem:
    names = _names({argument for rows in facts.values() for row in rows for argument in row})
    spot_of = {r: spot for r, spot in facts["receptacleatlocation"]}
    if not spot_of or not facts["atlocation"]:
        raise GameError(f"{source}: no receptacle or no agent has a place: give an unchanged problem file")
    start = facts["atlocation"][0][1]
    spots = sorted({*spot_of.values(), start, *(spot for _, spot in facts["objectatlocation"])})
    place = {spot: i for i, spot in enumerate(spots)}
    receptacles = sorted(spot_of)
    object_type = dict(facts["objecttype"])
    objects = sorted(o for o in object_type if o in names)
    number = {o: i for i, o in enumerate(objects)}
    index = {r: i for i, r in enumerate(receptacles)}
    contents, at, inside = [0] * len(receptacles), [0] * len(spots), defaultdict(int)
    for o, r in facts["inreceptacle"]:
        if o in number and r in index:
            contents[index[r]] |= 1 << number[o]
    for o, spot in facts["objectatlocation"]:
        if o in number:
            at[place[spot]] |= 1 << number[o]
    for inner, outer in facts["inreceptacleobject"]:
        if inner in number and outer in number:
            inside[number[outer]] |= 1 << number[inner]

    def mask(predicate: str, of: dict[str, int]) -> int:
        return sum({1 << of[row[0]] for row in facts[predicate] if row[0] in of})

    by_type: dict[str, int] = defaultdict(int)
    for o in objects:
        by_type[object_type[o]] |= 1 << number[o]
    receptacle_type = dict(facts["receptacletype"])
    rooms = {(r, o) for r, o in facts["cancontain"]}
    fits = [sum(m for o, m in by_type.items() if (receptacle_type.get(r), o) in rooms) for r in receptacles]
    holds = facts["holds"]
    return Problem(
        goal=goal,
        sentence=sentence,
        receptacles=tuple(names[r] for r in receptacles),
        spots=tuple(place[spot_of[r]] for r in receptacles),
        locations=tuple(names.get(spot, spot) for spot in spots),
        objects=tuple(names[o] for o in objects),
        contents=tuple(contents),
        at=tuple(at),
        start=place[start],
        openable=mask("openable", index),
        opened=mask("opened", index),
        fits=tuple(fits),
        traits={trait: mask(predicate, number) for predicate, trait in _TRAITS.items()},
        states={
            state: objects_there for predicate, state in _STATES.items() if (objects_there := mask(predicate, number))
        },
        inside=dict(inside),
        held=number[holds[0][1]] if holds else -1,
    )


# ---- writing ------------------------------------------------------------------------------------------------


def _identifier(name: str, total: int) -> str:
    """A mangled identifier that sorts where ``name`` stands: the highest number of a class comes first."""
    kind, _, number = name.partition(" ")
    place = total - int(number)
    stem, suffix = (kind.removesuffix("basin"), f"_bar_{kind}") if kind.endswith("basin") else (kind, "")
    return f"{stem}_bar__plus_{place:04d}{suffix}"


def write_problem(problem: Problem, name: str = "household") -> str:
    """The problem as PDDL text of the ``alfred`` domain; ``read_problem`` gives an equal problem back."""
    totals: dict[str, int] = defaultdict(int)
    for thing in (*problem.receptacles, *problem.objects, *problem.locations):
        kind, _, number = thing.partition(" ")
        totals[kind] = max(totals[kind], int(number))
    mangle = {
        thing: _identifier(thing, totals[thing.partition(" ")[0]])
        for thing in (*problem.receptacles, *problem.objects, *problem.locations)
    }
    receptacles = [mangle[r] for r in problem.receptacles]
    objects = [mangle[o] for o in problem.objects]
    spots = [mangle[spot] for spot in problem.locations]
    facts = [f"atlocation agent1 {spots[problem.start]}"]
    for i, r in enumerate(receptacles):
        facts += [f"receptacletype {r} {problem.receptacle_types[i]}type"]
        facts += [f"receptacleatlocation {r} {spots[problem.spots[i]]}"]
        facts += [f"openable {r}"] if problem.openable >> i & 1 else []
        facts += [f"opened {r}"] if problem.opened >> i & 1 else []
        facts += [f"inreceptacle {objects[o]} {r}" for o in bits(problem.contents[i])]
    for i, o in enumerate(objects):
        facts += [f"objecttype {o} {problem.object_types[i]}type"]
        facts += [f"{p} {o}" for p, trait in _TRAITS.items() if problem.traits.get(trait, 0) >> i & 1]
        facts += [f"{p} {o}" for p, state in _STATES.items() if problem.states.get(state, 0) >> i & 1]
        facts += [f"inreceptacleobject {objects[inner]} {o}" for inner in bits(problem.inside.get(i, 0))]
    facts += [f"objectatlocation {objects[o]} {spots[i]}" for i, mask in enumerate(problem.at) for o in bits(mask)]
    fitting = zip(problem.receptacle_types, problem.fits, strict=True)
    pairs = {(t, problem.object_types[o]) for t, mask in fitting for o in bits(mask)}
    facts += [f"cancontain {r}type {o}type" for r, o in sorted(pairs)]
    facts += [f"holds agent1 {objects[problem.held]}", "holdsany agent1"] if problem.held >= 0 else []
    # The domain's actions name these types, so they are declared even where nothing is of them.
    otypes = {*problem.object_types, *KNIVES, problem.goal.object}
    rtypes = {*problem.receptacle_types, *STATIONS.values()}
    if problem.goal.kind == "light":
        otypes.add(problem.goal.target)
    else:
        rtypes.add(problem.goal.target)
    declared = ["agent1 - agent"]
    declared += [f"{t}type - otype" for t in sorted(otypes)] + [f"{t}type - rtype" for t in sorted(rtypes)]
    declared += [f"{r} - receptacle" for r in receptacles] + [f"{o} - object" for o in objects]
    declared += [f"{spot} - location" for spot in spots]
    lines = [f"; Your task is to: {problem.sentence}", f"(define (problem {name})", "(:domain alfred)", "(:objects"]
    lines += [*declared, ")", "(:init", *(f"({fact})" for fact in facts), "(= (total-cost) 0)", ")"]
    return "\n".join([*lines, f"(:goal {_write_goal(problem.goal)})", ")", ""])


def _write_goal(goal: Goal) -> str:
    o, r = f"{goal.object}type", f"{goal.target}type"
    if goal.kind == "light":
        return (
            f"(and (exists (?t - object ?r - receptacle ?a - agent ?l - location) (and (objecttype ?t {r})"
            " (toggleable ?t) (istoggled ?t) (receptacleatlocation ?r ?l) (atlocation ?a ?l) (inreceptacle ?t ?r)))"
            f" (exists (?o - object ?a - agent) (and (objecttype ?o {o}) (holds ?a ?o))))"
        )
    if goal.kind == "two":
        second = f"(exists (?p - object) (and (not (= ?o ?p)) (objecttype ?p {o}) (inreceptacle ?p ?r)))"
    else:
        second = {
            "clean": "(cleanable ?o) (isclean ?o)",
            "heat": "(heatable ?o) (ishot ?o)",
            "cool": "(coolable ?o) (iscool ?o)",
        }.get(goal.kind, "")
    inner = f"(objecttype ?o {o}) (receptacletype ?r {r}) (inreceptacle ?o ?r) {second}"
    return f"(and (exists (?r - receptacle) (exists (?o - object) (and {inner}))))"
