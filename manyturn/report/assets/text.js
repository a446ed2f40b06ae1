// Elements, and text of environments and models inside them. Nothing here reads text as markup.

// What shows nothing or does something: controls, formats (bidi, zero width, tags), lone surrogates, private use,
// unassigned, separators of lines and paragraphs, and letters that are blank. Line feeds and tabs stay.
const BLANK = String.raw`\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\u{e0100}-\u{e01ef}`;
const UNSEEN = new RegExp(String.raw`(?:(?![\n\t])[\p{C}\p{Zl}\p{Zp}${BLANK}])+`, "gu");
const MOST_BADGES = 2000; // a text with more runs of unseen characters names them without badges, to stay fast
const SVG = "http://www.w3.org/2000/svg";

function dress(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name, value);
    else if (value !== false && value !== null && value !== undefined)
      node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** An HTML element; functions among the attributes are listeners, strings among the children are text. */
const make = (tag, attributes = {}, ...children) => dress(document.createElement(tag), attributes, children);

/** An SVG element. */
const draw = (tag, attributes = {}, ...children) => dress(document.createElementNS(SVG, tag), attributes, children);

/** "\u202e" as "<U+202E>". */
function names(characters) {
  const name = (one) => `<U+${one.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}>`;
  return Array.from(characters, name).join("");
}

/** The text as one string in which every unseen character is named: for tooltips, options and labels. */
const shown = (text) => text.replace(UNSEEN, names);

/** Append text to a box, unseen characters as badges. */
function fill(box, text) {
  const runs = [...text.matchAll(UNSEEN)];
  if (runs.length > MOST_BADGES) {
    box.append(shown(text));
    return box;
  }
  let from = 0;
  for (const run of runs) {
    box.append(text.slice(from, run.index), make("span", { class: "unseen" }, names(run[0])));
    from = run.index + run[0].length;
  }
  box.append(text.slice(from));
  return box;
}

/** A run of text that cannot reorder what stands around it. */
const said = (text, className = "", tag = "span") => fill(make(tag, { class: `said ${className}`, dir: "auto" }), text);

/** Text with its line feeds, in a box of its own that scrolls. */
const block = (text, label) => {
  const box = make("div", { class: "block", dir: "auto", tabindex: "0", role: "group", "aria-label": label });
  return text === "" ? dress(box, {}, [make("span", { class: "hint" }, "(empty)")]) : fill(box, text);
};

/** Where two texts differ: the lengths of their common beginning and of their common end, in whole words. */
function difference(one, two) {
  const most = Math.min(one.length, two.length);
  const inWord = (character) => character !== undefined && /\S/.test(character);
  let head = 0;
  while (head < most && one[head] === two[head]) head += 1;
  while (head > 0 && inWord(one[head - 1])) head -= 1;
  let tail = 0;
  while (tail < most - head && one[one.length - 1 - tail] === two[two.length - 1 - tail]) tail += 1;
  while (tail > 0 && inWord(one[one.length - tail])) tail -= 1;
  return { head, tail };
}

/** Like block(), with the part that differs from another text marked. */
function blockBeside(text, other, label) {
  if (text === other || text === "") return block(text, label);
  const { head, tail } = difference(text, other);
  const box = make("div", { class: "block", dir: "auto", tabindex: "0", role: "group", "aria-label": label });
  fill(box, text.slice(0, head));
  if (head < text.length - tail) box.append(fill(make("mark"), text.slice(head, text.length - tail)));
  return fill(box, text.slice(text.length - tail));
}

const minus = (text) => text.replaceAll("-", "\u2212");

/** A number in about four digits; whole numbers in full; "–" where unknown. */
function number(value) {
  if (value === null || value === undefined) return "\u2013";
  const size = Math.abs(value);
  if (size < 1e-12) return "0"; // what is left of parts that cancel out
  if (Number.isInteger(value) && size < 1e15) return minus(String(value));
  return minus(
    size >= 1e6 || size < 1e-3 ? value.toExponential(2).replace(/\.?0+e/, "e") : String(Number(value.toPrecision(4))),
  );
}

/** A number that always shows its sign. */
const signed = (value) => (value > 0 ? `+${number(value)}` : number(value));

/** A fraction as a percentage. */
const percent = (value) =>
  value === null ? "\u2013" : `${minus((100 * value).toFixed(1).replace(/\.0$/, ""))}\u00a0%`;

/** An interval in brackets. */
const range = (low, high, fraction) =>
  fraction
    ? `[${percent(low).replace(/\s%/, "")}, ${percent(high).replace(/\s%/, "")}]\u00a0%`
    : `[${number(low)}, ${number(high)}]`;

/** Seconds with a unit that fits. */
function duration(value) {
  if (value === null || value === undefined) return "\u2013";
  if (value < 1) return `${number(Number((1000 * value).toPrecision(value < 0.01 ? 2 : 3)))}\u00a0ms`;
  if (value < 120) return `${number(Number(value.toPrecision(3)))}\u00a0s`;
  return value < 7200 ? `${(value / 60).toFixed(1)}\u00a0min` : `${(value / 3600).toFixed(1)}\u00a0h`;
}
