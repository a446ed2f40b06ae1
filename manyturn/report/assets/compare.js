// Two episodes side by side, aligned by turn.

/** The first turn in which two traces differ in what was seen or said, or null if they are the same. */
function firstDifference(one, two) {
  const most = Math.max(one.replies.length, two.replies.length);
  for (let turn = 0; turn < most; turn += 1) {
    if (one.observations[turn] !== two.observations[turn] || one.replies[turn] !== two.replies[turn]) return turn;
  }
  return one.last === two.last ? null : Math.max(0, most - 1);
}

class SidesView {
  #root;
  #app;
  #asked = 0;
  #shown = null;

  constructor(root, app) {
    this.#root = root;
    this.#app = app;
  }

  get difference() {
    return this.#shown?.first ?? null;
  }

  /** Turns of the longer of the two. */
  get turns() {
    return this.#shown ? Math.max(...this.#shown.traces.map((trace) => trace.replies.length)) : 0;
  }

  async show(left, right, turn) {
    if (left === null || right === null) {
      this.#asked += 1;
      this.#shown = null;
      const what =
        left === null
          ? "Choose an episode in the list first."
          : "This episode has no counterpart: pin another one with x, then come back.";
      this.#root.replaceChildren(make("p", { class: "hint idle" }, what));
      return;
    }
    if (this.#shown?.key === this.#app.report.address(left, 0, right)) {
      this.#showTurn(turn);
      return;
    }
    const asked = (this.#asked += 1);
    const { report, traces } = this.#app;
    try {
      const both = await Promise.all([traces.of(left), traces.of(right)]);
      if (asked === this.#asked) this.#build(report, [left, right], both);
    } catch (error) {
      if (asked === this.#asked)
        this.#root.replaceChildren(make("p", { class: "fault", role: "alert" }, error.message));
    }
  }

  #build(report, episodes, traces) {
    const first = firstDifference(...traces);
    const strips = traces.map((trace) => new Strip(trace, (turn) => this.#app.goTurn(turn), { lanes: false }));
    const box = make("div", { class: "pair-turn" });
    this.#shown = { key: report.address(episodes[0], 0, episodes[1]), traces, strips, first, box };
    const verdict =
      first === null
        ? make("p", { class: "verdict" }, "Both went the same way.")
        : make(
            "p",
            { class: "verdict" },
            `They first differ in turn ${first + 1}. `,
            make("button", { type: "button", click: () => this.#app.goTurn(first), title: "key d" }, "Go there"),
          );
    const column = (k) =>
      make(
        "div",
        { class: "side-head" },
        naming(report, episodes[k]),
        dress(fate(report, episodes[k]), {}, [make("a", { href: report.address(episodes[k]) }, "open alone")]),
        strips[k].node,
      );
    this.#root.replaceChildren(
      make(
        "div",
        { class: "tools" },
        verdict,
        make("button", { type: "button", click: () => this.#app.swap() }, "Swap"),
        make("button", { type: "button", click: () => this.#app.copyLink() }, "Copy link"),
      ),
      make("div", { class: "sides" }, column(0), column(1)),
      box,
    );
    this.#showTurn(this.#app.place.turn);
  }

  #showTurn(turn) {
    const { traces, strips, first, box } = this.#shown;
    strips.forEach((strip) => strip.select(turn));
    const mark = first === turn ? make("span", { class: "pill warn" }, "first difference") : null;
    box.replaceChildren(
      make("h3", { class: "turn-head" }, `Turn ${turn + 1} of ${this.turns}`, mark),
      make(
        "div",
        { class: "sides" },
        ["observations", "replies"].flatMap((kind) => [0, 1].map((k) => this.#cell(kind, k, turn))),
        [0, 1].map((k) =>
          turn < traces[k].replies.length
            ? turnNumbers(traces[k], turn)
            : make("p", { class: "hint" }, "This episode has ended."),
        ),
      ),
    );
  }

  #cell(kind, k, turn) {
    const { traces } = this.#shown;
    const label = { observations: "Observation", replies: "Reply" }[kind];
    // After its last turn an episode has one more observation: the final one.
    const text = (trace) =>
      trace[kind][turn] ?? (kind === "observations" && turn === trace.replies.length ? trace.last : null);
    const [mine, other] = [text(traces[k]), text(traces[1 - k])];
    const differs = mine !== other;
    const final = turn >= traces[k].replies.length;
    const whose = make("span", { class: "whose" }, k === 0 ? "First: " : "Second: "); // for narrow pages
    return make(
      "section",
      { class: `part ${differs ? "differs" : "same"}` },
      make(
        "h4",
        {},
        whose,
        final && mine !== null ? `Final ${label.toLowerCase()}` : label,
        differs ? make("span", { class: "hint" }, " differs") : null,
      ),
      mine === null ? make("p", { class: "hint" }, "\u2013") : blockBeside(mine, other ?? "", label),
    );
  }
}
