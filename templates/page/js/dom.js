// Elements, numbers and colours. Names from a model are only ever set as text or as attributes.

const SVG = "http://www.w3.org/2000/svg";

function put(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  for (const child of children) node.append(child);
  return node;
}

const element = (name, attributes = {}, ...children) =>
  put(document.createElement(name), attributes, children);
const drawn = (name, attributes = {}, ...children) =>
  put(document.createElementNS(SVG, name), attributes, children);

const number = (value) => Math.round(value).toLocaleString("en-US");
const bytes = (value) => `${number(value)} B`;
const percent = (part, whole) => (whole ? `${((100 * part) / whole).toFixed(1)}%` : "-");
const dimensions = (shape) => shape.join("×") || "scalar";
const shortened = (name, length) => (name.length > length ? `${name.slice(0, length - 1)}…` : name);

// Light enough for dark text in either scheme, and told apart with every common colour blindness.
const PALETTE = [
  "#7fb2e5", "#f2a65a", "#7ecb9a", "#e08fb8", "#e8d05f", "#a99bdc", "#6fd0d0", "#d99c7c",
  "#b5c46a", "#c3a0c9", "#9fb7c9", "#e6a1a1",
];

// One colour for a kind on all pages: a colour of its own for each frequent one, a hue by its name for others.
const FREQUENT = ["depthwise_conv2d", "conv2d", "fully_connected", "add", "average_pool2d", "softmax",
  "concat", "max_pool2d", "mul", "reshape", "slice", "block_concat"];

function kindColour(kind) {
  const at = FREQUENT.indexOf(kind);
  if (at >= 0) return PALETTE[at];
  let hash = 7;
  for (const letter of kind) hash = (hash * 31 + letter.charCodeAt(0)) % 65521;
  return `hsl(${hash % 360}, 45%, ${68 + 6 * (hash % 3)}%)`;
}

// A name that no other element of the page has.
let named = 0;
const fresh = (name) => `${name}-${(named += 1)}`;

function choice(label, options, changed) {
  const select = element("select");
  for (const [value, text] of options) select.append(element("option", { value }, text));
  select.addEventListener("change", () => changed(select.value));
  return element("label", {}, label, select);
}

// Names and values of details.
function told(facts) {
  return element("dl", {}, ...facts.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
}

function legend(entries) {
  return element("div", { class: "legend" }, ...entries.map(([colour, text]) => {
    const mark = element("i");
    mark.style.background = colour;
    return element("span", {}, mark, text);
  }));
}

// One row of details in a table, below the row that was chosen; a second choice of that row closes it.
function opener(columns) {
  const cell = element("td", { colspan: columns, "aria-live": "polite" });
  const opened = element("tr", { class: "opened" }, cell);
  return (row, ...content) => {
    if (opened.previousSibling === row) return opened.remove();
    cell.replaceChildren(element("div", { class: "detail" }, ...content));
    row.after(opened);
  };
}

const tip = document.getElementById("tip");

function showTip(title, lines, x, y) {
  tip.replaceChildren(element("strong", {}, title), ...lines.map((line) => element("div", {}, line)));
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(8, Math.min(x + 14, innerWidth - width - 8))}px`;
  tip.style.top = `${y + 18 + height > innerHeight ? Math.max(8, y - height - 12) : y + 18}px`;
}

function hideTip() {
  tip.hidden = true;
}

// Shows what `describe` says of a drawn element, at the pointer or, from the keyboard, below it.
function tipFor(node, describe) {
  node.addEventListener("pointermove", (event) => showTip(...describe(), event.clientX, event.clientY));
  node.addEventListener("pointerleave", hideTip);
  node.addEventListener("focus", () => {
    const box = node.getBoundingClientRect();
    showTip(...describe(), box.left, box.bottom);
  });
  node.addEventListener("blur", hideTip);
}
