// Rows of a sweep: filters, the Pareto front of what they leave, and a table that sorts.

const swept = JSON.parse(document.getElementById("document").textContent);
const ANY = "any";
const wanted = { text: "", outcome: ANY, front: false };
const sorted = { column: 0, up: true };
let onFront = new Set();

const outcome = (row) => (row.ok ? "ok" : row.kind);
const distinct = (of) => [...new Set(swept.rows.map(of))].sort();
const choices = (of, all) => [[ANY, all], ...distinct(of).map((value) => [value, value || "no options"])];
const columns = [
  ["model", (row) => row.model, "name"], ["board", (row) => row.board], ["done", (row) => row.do],
  ["options", (row) => row.options, "name"],
  ["arena", (row) => row.arena, "number", bytes], ["RAM", (row) => row.ram, "number", bytes],
  ["flash", (row) => row.flash, "number", bytes],
  ["ms", (row) => row.milliseconds, "number", (value) => value.toLocaleString("en-US", { maximumFractionDigits: 3 })],
  ["differ", (row) => row.differing, "number", number],
  ["front", (row) => (onFront.has(row) ? "yes" : "")], ["outcome", outcome],
];

function shownRows() {
  const text = wanted.text.toLowerCase();
  return swept.rows.filter((row) => row.name.toLowerCase().includes(text)
    && ["model", "group", "board", "do", "options"].every((name) => (wanted[name] ?? ANY) === ANY || row[name] === wanted[name])
    && (wanted.outcome === ANY || outcome(row) === wanted.outcome));
}

// Of equal points the first counts, as in the command's table.
function frontOf(rows) {
  const points = rows.filter((row) => row.ok && ![row.ram, row.flash, row.milliseconds].includes(null))
    .sort((a, b) => a.ram - b.ram || a.flash - b.flash || a.milliseconds - b.milliseconds);
  const kept = [];
  for (const row of points) {
    if (!kept.some((other) => other.flash <= row.flash && other.milliseconds <= row.milliseconds)) kept.push(row);
  }
  return new Set(kept);
}

const drawFront = chart(document.getElementById("front"), () => {
  const spec = copied("sweep");
  spec.data.values = shownRows().filter((row) => row.ok && row.milliseconds !== null)
    .map((row) => ({ ...row, front: onFront.has(row) ? "yes" : "no" }))
    .filter((row) => !wanted.front || row.front === "yes");
  return spec;
});

function describe(row) {
  const facts = element("dl");
  const told = [["command", `thimble ${row.name}`], ["took", `${row.seconds.toFixed(2)} s`],
    ["known before", row.cached ? "yes" : "no"], ["time is", row.basis || "-"], ["error", row.error || "-"]];
  for (const [name, value] of told) facts.append(element("dt", {}, name), element("dd", {}, value));
  document.getElementById("detail").replaceChildren(element("div", { class: "detail" }, facts));
}

function compared(a, b) {
  const [one, other] = [a, b].map(columns[sorted.column][1]);
  const missing = (value) => value === null || value === "";
  if (missing(one) || missing(other)) return missing(one) - missing(other);
  const order = typeof one === "number" ? one - other : one.localeCompare(other);
  return sorted.up ? order : -order;
}

function drawRows() {
  const all = shownRows();
  onFront = frontOf(all);
  const rows = (wanted.front ? all.filter((row) => onFront.has(row)) : all).sort(compared);
  const heads = columns.map(([name, , kind], index) => {
    const button = element("button", { type: "button" }, name);
    button.addEventListener("click", () => {
      sorted.up = sorted.column === index ? !sorted.up : true;
      sorted.column = index;
      drawRows();
    });
    const order = index === sorted.column ? { "aria-sort": sorted.up ? "ascending" : "descending" } : {};
    return element("th", { scope: "col", class: kind ?? "", ...order }, button);
  });
  const lines = rows.map((row) => {
    const line = element("tr", { tabindex: "0" }, ...columns.map(([, of, kind, text]) => {
      const value = of(row);
      return element("td", { class: kind ?? "" }, value === null ? "-" : text ? text(value) : value);
    }));
    line.addEventListener("click", () => describe(row));
    line.addEventListener("keydown", (event) => { if (event.key === "Enter") describe(row); });
    return line;
  });
  document.getElementById("rows").replaceChildren(
    element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...lines));
  document.getElementById("count").textContent =
    `${number(rows.length)} of ${number(swept.rows.length)} rows, ${number(onFront.size)} on the front`;
}

function filter(name) {
  return (value) => {
    wanted[name] = value;
    drawRows();
    drawFront(false);
  };
}

const find = element("input", { type: "search", placeholder: "part of a name" });
find.addEventListener("input", () => filter("text")(find.value));
const only = element("input", { type: "checkbox" });
only.addEventListener("change", () => filter("front")(only.checked));
document.getElementById("filters").append(
  choice("Model", choices((row) => row.model, "all"), filter("model")),
  choice("Group", choices((row) => row.group, "all"), filter("group")),
  choice("Board", choices((row) => row.board, "all"), filter("board")),
  choice("Done", choices((row) => row.do, "all"), filter("do")),
  choice("Options", choices((row) => row.options, "all"), filter("options")),
  choice("Outcome", choices(outcome, "all"), filter("outcome")),
  element("label", {}, "Find", find),
  element("label", {}, only, "the front alone"));
drawRows();
