// What is on show, how one gets there, and the address that brings one back.

const POLL = 2000; // milliseconds between two looks at a run that goes on
const byId = (id) => document.getElementById(id);

class App {
  report = null;
  traces = null;
  place = { view: "overview", episode: null, turn: 0 };
  #source;
  #pinned = null; // name of the episode that others are compared with
  #push = false; // whether the next address is a new entry of the history
  #toast = 0; // timer of the message
  #written = 0; // timer of the address: browsers slow down a page that writes it at each key press

  constructor(source) {
    this.#source = source;
    this.overview = new Overview(byId("overview"));
    this.list = new EpisodeList(byId("list"));
    this.trace = new TraceView(byId("trace"), this);
    this.sides = new SidesView(byId("sides"), this);
    addEventListener("hashchange", () => this.route());
    for (const link of document.querySelectorAll("nav a")) {
      link.addEventListener("click", (event) => {
        event.preventDefault(); // the tab keeps the episode that is open; its bare address does not
        this.goView(link.dataset.view);
      });
    }
  }

  /** Take a state of the document; what is selected stays selected. */
  take(data) {
    const selected = this.place.episode === null ? null : this.report.name(this.place.episode);
    this.report = new Report(data);
    this.traces = new Traces(this.#source, this.report);
    byId("title").replaceChildren(said(data.title));
    document.title = shown(data.title);
    this.overview.show(data);
    if (selected !== null) this.place.episode = this.report.find(selected);
    this.list.show(this.report, this.traces, this.place.episode);
    if (selected === null) this.route();
    else if (this.place.episode === null) this.#show();
    else if (this.place.view === "episodes") this.trace.renew(this.place.episode);
  }

  /** Show what the address says. */
  route() {
    const parts = new Map(
      location.hash
        .slice(1)
        .split("&")
        .map((part) => part.split(/=(.*)/s, 2)),
    );
    if (parts.has("e")) {
      const [episode, beside] = [this.report.find(parts.get("e")), this.report.find(parts.get("f"))];
      if (episode === null) this.say("This report does not hold the episode of the address.");
      if (parts.has("f")) this.#pinned = beside === null ? null : this.report.name(beside);
      this.place = {
        view: parts.has("f") ? "sides" : "episodes",
        episode,
        turn: this.#within(episode, Number(parts.get("t") ?? 1) - 1),
      };
    } else {
      this.place = {
        view: ["episodes", "sides"].find((name) => parts.has(name)) ?? "overview",
        episode: null,
        turn: 0,
      };
    }
    this.#show();
  }

  #within(episode, turn) {
    const last =
      this.place.view === "sides" && this.sides.turns ? this.sides.turns : (this.report.episodes.turns[episode] ?? 0);
    return Number.isNaN(turn) ? 0 : Math.max(0, Math.min(last - 1, turn));
  }

  #show() {
    const { view, episode, turn } = this.place;
    for (const section of document.querySelectorAll(".view")) section.hidden = section.id !== view;
    for (const link of document.querySelectorAll("nav a")) {
      if (link.dataset.view === view) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    byId("episodes").classList.toggle("opened", episode !== null);
    if (view === "episodes") {
      this.list.select(episode);
      if (episode === null) this.trace.idle();
      else this.trace.show(episode, turn);
    }
    if (view === "sides") this.sides.show(episode, this.beside, turn);
  }

  /** The episode on the right: the pinned one, else the natural counterpart. */
  get beside() {
    const { episode } = this.place;
    if (episode === null) return null;
    const pinned = this.#pinned === null ? null : this.report.find(this.#pinned);
    return pinned === null || pinned === episode ? this.report.counterpart(episode) : pinned;
  }

  get address() {
    const { view, episode, turn } = this.place;
    if (view === "overview" || episode === null) return `#${view}`;
    return this.report.address(episode, turn, view === "sides" ? this.beside : null);
  }

  #go(change) {
    this.#push ||= "view" in change || "episode" in change;
    this.place = { ...this.place, ...change };
    this.#show();
    clearTimeout(this.#written);
    this.#written = setTimeout(() => {
      history[this.#push ? "pushState" : "replaceState"](null, "", this.address);
      this.#push = false;
    }, 150);
  }

  goTurn(turn) {
    if (this.place.episode !== null) this.#go({ turn: this.#within(this.place.episode, turn) });
  }

  goEpisode(by) {
    const episode = this.list.neighbour(this.place.episode, by);
    if (episode !== null) this.#go({ episode, turn: 0 });
  }

  goView(view) {
    this.#go({ view });
  }

  close() {
    this.#go({ episode: null, turn: 0 });
  }

  goSides() {
    this.#go({ view: "sides" });
  }

  goDifference() {
    if (this.place.view === "sides" && this.sides.difference !== null) this.goTurn(this.sides.difference);
  }

  goSearch() {
    this.#go({ view: "episodes" });
    byId("episodes").classList.remove("opened"); // on a narrow page the list hides behind the episode
    this.list.filters.text.focus();
  }

  swap() {
    const { episode } = this.place;
    const other = this.beside;
    this.#pinned = this.report.name(episode);
    this.#go({ episode: other });
  }

  isPinned(i) {
    return this.#pinned === this.report.name(i);
  }

  pin() {
    if (this.place.episode === null) return;
    this.#pinned = this.isPinned(this.place.episode) ? null : this.report.name(this.place.episode);
    byId("trace")
      .querySelector(".pin")
      ?.setAttribute("aria-pressed", String(this.#pinned !== null));
    this.say(
      this.#pinned === null ? "Unpinned." : "Pinned. Go to another episode and press s to see both side by side.",
    );
  }

  copyLink() {
    this.#copy(location.href.split("#")[0] + this.address, "Link copied.");
  }

  /** What a replay needs: where it was played and the actions in order. */
  async copyReplay() {
    const { episode } = this.place;
    if (episode === null) return;
    const { task, stage, member } = this.report.episodes;
    const { actions } = await this.traces.of(episode);
    const facts = Object.fromEntries(this.report.document.facts);
    this.#copy(
      JSON.stringify({ facts, task: task[episode], stage: stage[episode], member: member[episode], actions }, null, 1),
      "Actions copied as JSON.",
    );
  }

  async #copy(text, done) {
    try {
      await navigator.clipboard.writeText(text);
      this.say(done);
    } catch {
      this.say("The browser did not let this page copy.");
    }
  }

  say(text) {
    const toast = byId("toast");
    toast.textContent = text;
    toast.hidden = false;
    clearTimeout(this.#toast);
    this.#toast = setTimeout(() => {
      toast.hidden = true;
    }, 4000);
  }

  /** Read the document, and go on reading it while a run grows. */
  async follow() {
    const status = byId("status");
    try {
      const data = await this.#source.document();
      if (data !== null) this.take(data);
      status.className = this.report.document.done ? "" : "growing";
      status.textContent = this.report.document.done ? "" : `growing \u00b7 ${new Date().toLocaleTimeString()}`;
    } catch (error) {
      status.className = "gone";
      status.textContent = error.message;
      if (this.report === null)
        byId("overview").replaceChildren(make("p", { class: "fault", role: "alert" }, error.message));
    }
    if (this.#source.live && !this.report?.document.done) setTimeout(() => this.follow(), POLL);
  }
}

buildHelp();
const app = new App(byId("document") ? new Enclosed() : new Served());
listen(app);
app.follow();
