// The keyboard: what each key does, and the overlay that says so.

const KEYS = [
  { keys: ["ArrowRight", "j"], shown: "\u2192 or j", does: "next turn", act: (app) => app.goTurn(app.place.turn + 1) },
  {
    keys: ["ArrowLeft", "k"],
    shown: "\u2190 or k",
    does: "previous turn",
    act: (app) => app.goTurn(app.place.turn - 1),
  },
  { keys: ["ArrowDown", "n"], shown: "\u2193 or n", does: "next episode", act: (app) => app.goEpisode(1) },
  { keys: ["ArrowUp", "p"], shown: "\u2191 or p", does: "previous episode", act: (app) => app.goEpisode(-1) },
  { keys: ["Home"], shown: "Home", does: "first turn", act: (app) => app.goTurn(0) },
  { keys: ["End"], shown: "End", does: "last turn", act: (app) => app.goTurn(Infinity) },
  { keys: ["d"], shown: "d", does: "side by side: first difference", act: (app) => app.goDifference() },
  {
    keys: ["x"],
    shown: "x",
    does: "pin this episode, to compare others with it; again to unpin",
    act: (app) => app.pin(),
  },
  {
    keys: ["s"],
    shown: "s",
    does: "side by side, and back",
    act: (app) => (app.place.view === "sides" ? app.goView("episodes") : app.goSides()),
  },
  { keys: ["c"], shown: "c", does: "copy a link to this turn", act: (app) => app.copyLink() },
  { keys: ["r"], shown: "r", does: "copy the episode's actions as a replay", act: (app) => app.copyReplay() },
  { keys: ["o"], shown: "o", does: "overview", everywhere: true, act: (app) => app.goView("overview") },
  { keys: ["e"], shown: "e", does: "episodes", everywhere: true, act: (app) => app.goView("episodes") },
  { keys: ["/"], shown: "/", does: "search", everywhere: true, act: (app) => app.goSearch() },
  {
    keys: ["?"],
    shown: "?",
    does: "this help",
    everywhere: true,
    act: () => document.getElementById("help").showModal(),
  },
  {
    keys: ["Escape"],
    shown: "Esc",
    does: "leave a field, close this help",
    everywhere: true,
    act: () => document.activeElement?.blur(),
  },
];

function buildHelp() {
  const rows = KEYS.map(({ shown: key, does }) =>
    make("div", {}, make("dt", {}, make("kbd", {}, key)), make("dd", {}, does)),
  );
  const help = document.getElementById("help");
  help.append(
    make("h2", { id: "help-title" }, "Keys"),
    make("dl", {}, rows),
    make("button", { type: "button", click: () => help.close() }, "Close"),
  );
  document.getElementById("help-button").addEventListener("click", () => help.showModal());
}

function listen(app) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.getElementById("help").open) return;
    const { target } = event;
    const typing = target.matches("input:not([type=checkbox]), textarea");
    const found = KEYS.find(({ keys }) => keys.includes(event.key));
    if (!found || (typing && event.key !== "Escape")) return;
    if (!found.everywhere && app.place.view === "overview") return;
    // Up, down, Home and End keep their own meaning in a menu, and in a text box that has something to scroll.
    const scrolls =
      target.matches("select") || (target.matches(".block, .scroll") && target.scrollHeight > target.clientHeight);
    if (scrolls && ["ArrowUp", "ArrowDown", "Home", "End"].includes(event.key)) return;
    event.preventDefault();
    found.act(app);
  });
}
