// One episode, turn by turn.

const KINDS = ["observation", "tokens", "credit", "timings"];

const pair = (name, value, kind = "") =>
  make("div", { class: kind }, make("dt", {}, typeof name === "string" ? said(name) : name), make("dd", {}, value));

/** The numbers of a turn: rewards and their parts, credit, times. */
function turnNumbers(trace, turn) {
  const coloured = (value) => make("span", { class: sign(value) }, signed(value));
  const [policy, env] = trace.seconds[turn];
  return make(
    "dl",
    { class: "numbers" },
    pair("reward", coloured(trace.rewards[turn])),
    Object.entries(trace.parts[turn]).map(([name, value]) =>
      pair(make("span", {}, "part ", said(name)), coloured(value)),
    ),
    pair("return to go", signed(trace.to_go[turn])),
    pair("cumulative", signed(cumulative(trace.rewards)[turn])),
    trace.progress[turn] === null ? null : pair("progress", number(trace.progress[turn])),
    Object.entries(trace.columns).map(([name, values]) => pair(name, coloured(values[turn]), "kind-credit")),
    trace.versions[turn] === null ? null : pair("policy version", String(trace.versions[turn]), "kind-timings"),
    pair("policy", duration(policy), "kind-timings"),
    pair("environment", duration(env), "kind-timings"),
  );
}

/** A text under its heading. */
const titled = (label, text, kind = "") =>
  make("section", { class: `part ${kind}` }, make("h4", {}, label), block(text, label));

/** What was seen, said and done in a turn; an action that is the reply itself is not written twice, an inner turn has none. */
function exchange(trace, turn) {
  const answer = titled("Reply", trace.replies[turn]);
  if (trace.inner[turn] !== null) {
    answer.append(make("p", { class: "hint" }, "The environment did not see it."));
  } else if (trace.actions[turn] === trace.replies[turn]) {
    answer.append(make("h4", {}, "Action ", make("span", { class: "hint" }, "the reply itself")));
  } else {
    answer.append(make("h4", {}, "Action"), block(trace.actions[turn], "Action"));
  }
  return make(
    "div",
    { class: "exchange" },
    titled("Observation", trace.observations[turn], "kind-observation"),
    trace.reasoning[turn] ? titled("Reasoning", trace.reasoning[turn], "kind-reasoning") : null,
    answer,
  );
}

/** The badges that say how an episode went. */
function fate(report, i) {
  const { ending, cause, return: returns, turns, inner_turns: inner, invalid, seconds, attempts } = report.episodes;
  const outcome = report.outcome(i);
  const known = cause[i] !== "" && cause[i].length < 20 && outcome !== "error";
  return make(
    "p",
    { class: "fate" },
    make("span", { class: `pill ${outcome}` }, outcomeSign(outcome), ` ${outcome}`),
    said(known ? `${ending[i]}: ${cause[i]}` : ending[i], "pill"),
    make("span", {}, "return ", make("b", {}, number(returns[i]))),
    make("span", {}, `${turns[i]} turns`),
    inner[i] ? make("span", {}, `${inner[i]} inner turns`) : null,
    invalid[i] ? make("span", { class: "minus" }, `${invalid[i]} invalid`) : null,
    attempts[i] > 1 ? make("span", {}, `${attempts[i]} attempts`) : null,
    make("span", { class: "kind-timings" }, duration(seconds[i])),
  );
}

/** What names an episode: its task, and source, stage, member, split, difficulty and tags. */
function naming(report, i) {
  const { task, source, stage, member, split, difficulty, tags } = report.episodes;
  const several = report.document.sources.length > 1;
  return make(
    "div",
    { class: "naming" },
    make("h2", {}, said(task[i])),
    make(
      "p",
      { class: "hint" },
      several ? [said(report.document.sources[source[i]], "source-name"), " \u00b7 "] : null,
      said(stage[i]),
      ` \u00b7 member ${member[i]} \u00b7 `,
      said(split[i]),
      difficulty[i] === null ? null : [" \u00b7 ", said(difficulty[i])],
      tags[i].map((tag) => [" ", said(tag, "tag")]).flat(),
    ),
  );
}

class TraceView {
  #root;
  #app;
  #asked = 0;
  #name = null; // of the episode on show: its number changes when a run grows
  #episode = null;
  #trace = null;
  #group = null;
  #strip = null;
  #turnBox = make("div", { class: "turn" });
  #groupBox = make("div", {});

  constructor(root, app) {
    this.#root = root;
    this.#app = app;
    this.idle();
  }

  idle() {
    this.#asked += 1;
    [this.#name, this.#trace] = [null, null];
    this.#root.replaceChildren(
      make("p", { class: "hint idle" }, "Choose an episode, or press n for the first. ? lists the keys."),
    );
  }

  /** Show a turn of an episode, reading its trace if it is not the one on show. */
  async show(i, turn) {
    const { report, traces } = this.#app;
    if (report.name(i) === this.#name && this.#trace) {
      this.#showTurn(turn);
      return;
    }
    const asked = (this.#asked += 1);
    [this.#name, this.#episode, this.#trace, this.#group] = [report.name(i), i, null, null];
    let trace;
    try {
      trace = await traces.of(i);
    } catch (error) {
      if (asked === this.#asked)
        this.#root.replaceChildren(this.#head(report, i), make("p", { class: "fault", role: "alert" }, error.message));
      return;
    }
    if (asked !== this.#asked) return;
    this.#trace = trace;
    this.#strip = new Strip(trace, (chosen) => this.#app.goTurn(chosen));
    this.#groupBox.replaceChildren();
    this.#root.replaceChildren(this.#head(report, i), this.#strip.node, this.#turnBox, this.#groupBox);
    this.#root.scrollTop = 0;
    this.#showTurn(this.#app.place.turn);
    await this.#addGroup(asked);
  }

  /** Another state of the document has come, in which the episode on show has the number i. */
  renew(i) {
    this.#episode = i;
    if (this.#trace) this.#addGroup(this.#asked);
    else this.show(i, this.#app.place.turn);
  }

  async #addGroup(asked) {
    const { report, traces } = this.#app;
    try {
      const group = await Group.load(report, traces, this.#episode);
      if (asked !== this.#asked || this.#trace === null) return;
      this.#group = group;
    } catch {
      return; // the members of a group that is being written are shown when they are there
    }
    this.#groupBox.replaceChildren(groupTable(report, this.#group, this.#episode));
    this.#addShared(this.#app.place.turn);
  }

  #head(report, i) {
    const { cause } = report.episodes;
    const tool = (label, key, action) => make("button", { type: "button", click: action, title: `key ${key}` }, label);
    const long = cause[i] !== "" && (report.outcome(i) === "error" || cause[i].length >= 20);
    return make(
      "header",
      { class: "episode-head" },
      make(
        "div",
        { class: "tools" },
        make("button", { type: "button", class: "back", click: () => this.#app.close() }, "\u2190 Episodes"),
        tool("Copy link", "c", () => this.#app.copyLink()),
        tool("Copy as replay", "r", () => this.#app.copyReplay()),
        make(
          "button",
          {
            type: "button",
            class: "pin",
            title: "key x",
            "aria-pressed": String(this.#app.isPinned(i)),
            click: () => this.#app.pin(),
          },
          "Pin",
        ),
        tool("Compare", "s", () => this.#app.goSides()),
      ),
      naming(report, i),
      fate(report, i),
      long ? make("div", { class: "cause" }, make("h4", {}, "Cause"), block(cause[i], "Cause of the ending")) : null,
      this.#toggles(),
    );
  }

  #toggles() {
    const toggle = (kind) => {
      const box = make("input", {
        type: "checkbox",
        checked: !this.#root.classList.contains(`hide-${kind}`),
        change: () => this.#root.classList.toggle(`hide-${kind}`, !box.checked),
      });
      return make("label", {}, box, ` ${kind}`);
    };
    return make("div", { class: "toggles", role: "group", "aria-label": "Show" }, KINDS.map(toggle));
  }

  #showTurn(turn) {
    const trace = this.#trace;
    this.#strip.select(turn);
    if (!trace.replies.length) {
      this.#turnBox.replaceChildren(make("p", { class: "hint" }, "This episode has no turns."), this.#final());
      return;
    }
    const focused = this.#turnBox.contains(document.activeElement)
      ? document.activeElement.getAttribute("aria-label")
      : null;
    const [tokens, logprobs, entropies] = [trace.tokens[turn], trace.logprobs[turn], trace.entropies[turn]];
    const parts = [
      this.#turnHead(turn),
      turnNumbers(trace, turn),
      exchange(trace, turn),
      tokens && new Tokens({ tokens, logprobs, entropies }).node,
      turn === trace.replies.length - 1 && this.#final(),
    ];
    this.#turnBox.replaceChildren(...parts.filter(Boolean));
    this.#addShared(turn);
    if (focused === null) return;
    [...this.#turnBox.querySelectorAll("[aria-label]")]
      .find((one) => one.getAttribute("aria-label") === focused)
      ?.focus({ preventScroll: true });
  }

  #turnHead(turn) {
    const step = (label, by, arrow) =>
      make("button", { type: "button", "aria-label": label, click: () => this.#app.goTurn(turn + by) }, arrow);
    return make(
      "h3",
      { class: "turn-head" },
      make("span", {}, `Turn ${turn + 1} of ${this.#trace.replies.length}`),
      step("Previous turn", -1, "\u2190"),
      step("Next turn", 1, "\u2192"),
      new Set(this.#trace.roles).size > 1 ? make("span", { class: "pill" }, this.#trace.roles[turn]) : null,
      this.#trace.inner[turn] === null ? null : make("span", { class: "pill" }, this.#trace.inner[turn]),
      this.#trace.format_valid[turn] ? null : make("span", { class: "pill failure" }, "broken format"),
      this.#trace.understood[turn] ? null : make("span", { class: "pill failure" }, "not understood"),
    );
  }

  #final() {
    return titled("Final observation", this.#trace.last, "kind-observation");
  }

  #addShared(turn) {
    this.#turnBox.querySelector(".anchors")?.remove();
    if (this.#group === null || !this.#trace.replies.length) return;
    this.#turnBox.append(sharedSituation(this.#app.report, this.#group, this.#episode, this.#trace, turn));
  }
}
