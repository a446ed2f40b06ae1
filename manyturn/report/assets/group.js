// What else was tried at the same task: the members of the group, and their turns in the same situation.

/** Traces of a group's members, and its turns by situation. */
class Group {
  #anchors = new Map();

  /** @param members [{episode, trace}], in the order of the document */
  constructor(members) {
    this.members = members;
    for (const { episode, trace } of members) {
      trace.anchors.forEach((anchor, turn) => {
        if (!this.#anchors.has(anchor)) this.#anchors.set(anchor, []);
        this.#anchors.get(anchor).push({ episode, trace, turn });
      });
    }
  }

  static async load(report, traces, i) {
    const members = report.group(i);
    return new Group(await Promise.all(members.map(async (episode) => ({ episode, trace: await traces.of(episode) }))));
  }

  /** The turns of the group in this situation, this one included. */
  sharing(anchor) {
    return this.#anchors.get(anchor) ?? [];
  }
}

const dataTable = (label, texts, numbers, rows) =>
  make(
    "div",
    { class: "scroll", tabindex: "0", role: "group", "aria-label": label },
    make(
      "table",
      {},
      make(
        "thead",
        {},
        make(
          "tr",
          {},
          texts.map((head) => make("th", { scope: "col" }, head)),
          numbers.map((head) =>
            make("th", { scope: "col", class: head.endsWith("credit") ? "number kind-credit" : "number" }, head),
          ),
        ),
      ),
      make("tbody", {}, rows),
    ),
  );

/** The turns that share the situation of a turn, as links. */
function sharedSituation(report, group, episode, trace, turn) {
  const sharing = group.sharing(trace.anchors[turn]);
  const members = new Set(sharing.map((one) => one.episode)).size;
  const credited = sharing.every((one) => totalCredit(one.trace) !== null);
  const rows = sharing.map((one) => {
    const here = one.episode === episode && one.turn === turn;
    return make(
      "tr",
      { class: here ? "here" : "", "aria-current": here && "true" },
      make(
        "td",
        {},
        make(
          "a",
          { href: report.address(one.episode, one.turn) },
          `member ${report.episodes.member[one.episode]}, turn ${one.turn + 1}`,
        ),
      ),
      make("td", { class: "text" }, said(one.trace.replies[one.turn])),
      credited ? make("td", { class: "number" }, signed(totalCredit(one.trace)[one.turn])) : null,
      make("td", { class: "number" }, signed(one.trace.to_go[one.turn])),
    );
  });
  const alone = sharing.length === 1;
  const heading = alone
    ? "No other turn of the group is in this situation"
    : `${sharing.length} turns of ${members} of ${group.members.length} members share this situation`;
  return make(
    "section",
    { class: "kind-credit part anchors" },
    make("h4", {}, heading),
    alone
      ? null
      : dataTable("Turns in this situation", ["where", "reply"], credited ? ["credit", "to go"] : ["to go"], rows),
  );
}

/** All members of a task's group, with how they fared. */
function groupTable(report, group, episode) {
  const { member, return: returns, turns, ending } = report.episodes;
  const successes = group.members.filter((one) => report.outcome(one.episode) === "success").length;
  const rows = group.members.map(({ episode: i, trace }) =>
    make(
      "tr",
      { class: i === episode ? "here" : "", "aria-current": i === episode && "true" },
      make(
        "td",
        {},
        outcomeSign(report.outcome(i)),
        " ",
        make("a", { href: report.address(i) }, `member ${member[i]}`),
      ),
      make("td", {}, said(ending[i])),
      make("td", { class: "number" }, number(returns[i])),
      make("td", { class: "number" }, String(turns[i])),
      report.credited ? make("td", { class: "number kind-credit" }, signed(mean(totalCredit(trace)))) : null,
    ),
  );
  return make(
    "section",
    { class: "part group" },
    make("h4", {}, `Group: ${successes} of ${rows.length} succeeded`),
    dataTable(
      "Members of the group",
      ["member", "ending"],
      ["return", "turns", ...(report.credited ? ["mean credit"] : [])],
      rows,
    ),
  );
}
