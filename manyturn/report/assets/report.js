// The document with what is looked up in it: names of episodes, their groups and outcomes.

const ERRORS = new Set(["env_error", "infra_error", "cancelled"]);
const SIGNS = { success: "\u2713", failure: "\u2717", error: "!" };

class Report {
  #byName = new Map();
  #names = [];
  #groups = new Map();
  #groupOf = [];
  #twins = new Map();

  constructor(document) {
    this.document = document;
    this.episodes = document.episodes;
    this.count = this.episodes.task.length;
    this.credited = this.episodes.credit.some((value) => value !== null);
    for (let i = 0; i < this.count; i += 1) this.#enter(i);
  }

  #enter(i) {
    const { source, stage, task, member } = this.episodes;
    const parts = [this.document.sources[source[i]], stage[i], task[i], String(member[i])];
    let name = parts.map((part) => encodeURIComponent(part.toWellFormed())).join("/");
    while (this.#byName.has(name)) name += "+";
    this.#byName.set(name, i);
    this.#names.push(name);
    for (const [map, key] of [
      [this.#groups, JSON.stringify([source[i], stage[i], task[i]])],
      [this.#twins, JSON.stringify([task[i], member[i]])],
    ]) {
      if (!map.has(key)) map.set(key, []);
      map.get(key).push(i);
      if (map === this.#groups) this.#groupOf.push(map.get(key));
    }
  }

  /** Stable, URI-encoded: SOURCE/STAGE/TASK/MEMBER. */
  name(i) {
    return this.#names[i];
  }

  /** The number of the episode with this name, or null. */
  find(name) {
    return this.#byName.get(name) ?? null;
  }

  /** All episodes of the same source, stage and task. */
  group(i) {
    return this.#groupOf[i];
  }

  /** What an episode is compared with if nobody chose: the same task and member of another source, else its group. */
  counterpart(i) {
    const { source, stage, task, member } = this.episodes;
    const twins = this.#twins.get(JSON.stringify([task[i], member[i]])).filter((j) => source[j] !== source[i]);
    const group = this.group(i);
    const differing = group.find((j) => this.outcome(j) !== this.outcome(i));
    const next = group[(group.indexOf(i) + 1) % group.length];
    const found = twins.find((j) => stage[j] === stage[i]) ?? twins[0] ?? differing ?? next;
    return found === i ? null : found;
  }

  outcome(i) {
    if (ERRORS.has(this.episodes.ending[i])) return "error";
    return this.episodes.success[i] ? "success" : "failure";
  }

  /** Address of a turn, counted from 0 here and from 1 in the address, as on the page. */
  address(i, turn = 0, beside = null) {
    return `#e=${this.#names[i]}&t=${turn + 1}${beside === null ? "" : `&f=${this.#names[beside]}`}`;
  }
}

/** Which column of a trace is its credit: the total, else the first level there is, else none. */
const totalCredit = (trace) =>
  new Map(Object.entries(trace.columns)).get("advantage") ?? Object.values(trace.columns)[0] ?? null;

/** An outcome as a coloured sign with its word for those who do not see it. */
const outcomeSign = (outcome) =>
  make("span", { class: `sign ${outcome}`, role: "img", "aria-label": outcome, title: outcome }, SIGNS[outcome]);
