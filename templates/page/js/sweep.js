// Rows of a sweep: filters, models by boards, the Pareto front of what they leave, and a table that sorts.

const swept = JSON.parse(document.getElementById("document").textContent);
const ANY = "any";
const LOG_FROM = 20; // an axis is logarithmic if its values differ by this factor
const WHOLE_ROWS = 120; // more of them scroll in a frame of their own
const MOST_COLOURS = PALETTE.length;
const wanted = { text: "", outcome: ANY, front: false, cell: "time" };
const sorted = { column: 0, up: true };
let onFront = new Set();

const outcome = (row) => (row.ok ? "fits" : row.kind);
const distinct = (of) => [...new Set(swept.rows.map(of))].sort();
const several = (of) => distinct(of).length > 1;
const columns = [
  ["model", (row) => row.model, "name"], ["group", (row) => row.group], ["board", (row) => row.board], ["done", (row) => row.do],
  ["options", (row) => row.options, "name"],
  ["arena", (row) => row.arena, "number", bytes], ["RAM", (row) => row.ram, "number", bytes],
  ["flash", (row) => row.flash, "number", bytes],
  ["ms", (row) => row.milliseconds, "number", (value) => value.toLocaleString("en-US", { maximumFractionDigits: 3 })],
  ["differ", (row) => row.differing, "number", number],
  ["front", (row) => (onFront.has(row) ? "yes" : "")], ["outcome", outcome],
].filter(([name, of]) => !["group", "done", "options", "differ"].includes(name) || several(of));

function shownRows() {
  const text = wanted.text.toLowerCase();
  return swept.rows.filter((row) => row.name.toLowerCase().includes(text)
    && ["model", "group", "board", "do", "options"].every((name) => (wanted[name] ?? ANY) === ANY || row[name] === wanted[name])
    && (wanted.outcome === ANY || outcome(row) === wanted.outcome));
}

// Among rows of one model, as the command's stars; of equal points the first counts.
function frontOf(rows) {
  const models = [...new Set(rows.map((row) => row.model))];
  return new Set(models.flatMap((model) => frontOfModel(rows.filter((row) => row.model === model))));
}

function frontOfModel(rows) {
  const points = rows.filter((row) => row.ok && ![row.ram, row.flash, row.milliseconds].includes(null))
    .sort((a, b) => a.ram - b.ram || a.flash - b.flash || a.milliseconds - b.milliseconds);
  const kept = [];
  for (const row of points) {
    if (!kept.some((other) => other.flash <= row.flash && other.milliseconds <= row.milliseconds)) kept.push(row);
  }
  return kept;
}

const drawFront = chart(document.getElementById("front"), () => {
  const spec = copied("sweep");
  const values = shownRows().filter((row) => row.ok && row.milliseconds !== null)
    .map((row) => ({ ...row, front: onFront.has(row) ? "yes" : "no" }))
    .filter((row) => !wanted.front || row.front === "yes");
  const [marks, limit] = spec.layer;
  marks.data.values = values;
  for (const axis of [marks.encoding.x, marks.encoding.y]) {
    const found = values.map((row) => row[axis.field]);
    const least = Math.min(...found);
    axis.scale = least > 0 && Math.max(...found) > LOG_FROM * least ? { type: "log" } : { zero: false, padding: 20 };
  }
  const count = (name) => new Set(values.map((row) => row[name])).size;
  const field = count("board") > 1 ? "board" : count("model") <= MOST_COLOURS ? "model" : "group";
  marks.encoding.color = { field, type: "nominal", title: field };
  const board = swept.boards.find(({ name }) => name === wanted.board);
  if (board?.ram_bytes) limit.data.values = [{ ram: board.ram_bytes }];
  else spec.layer.pop();
  return spec;
});

function describe(row) {
  const board = swept.boards.find(({ name }) => name === row.board);
  const of = (used, there) => (used === null ? "-" : `${bytes(used)}${there ? `, ${percent(used, there)} of ${bytes(there)}` : ""}`);
  return [element("h3", {}, `${row.model} on ${row.board}`), told([
    ["fits", row.ok ? "yes" : row.kind], ["RAM", of(row.ram, board.ram_bytes)], ["flash", of(row.flash, board.flash_bytes)],
    ["arena", row.arena === null ? "-" : bytes(row.arena)],
    ["one inference", row.milliseconds === null ? "-" : `${milliseconds(row.milliseconds)} ms, ${row.basis}`],
    ["command", `thimble ${row.name}`],
    ...(row.seconds === null ? [] : [["took", `${row.seconds.toFixed(2)} s${row.cached ? ", known before" : ""}`]]),
    ...(row.error ? [["said", row.error]] : []),
  ])];
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
  const listed = wanted.front ? all.filter((row) => onFront.has(row)) : all;
  const rows = [...listed].sort(compared);
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
  document.getElementById("rows").parentNode.parentNode.classList.toggle("long", rows.length > WHOLE_ROWS);
  const open = opener(columns.length);
  const lines = rows.map((row) => {
    const line = element("tr", { tabindex: "0" }, ...columns.map(([, of, kind, text]) => {
      const value = of(row);
      return element("td", { class: kind ?? "" }, value === null ? "-" : text ? text(value) : value);
    }));
    line.addEventListener("click", () => open(line, ...describe(row)));
    line.addEventListener("keydown", (event) => { if (event.key === "Enter") open(line, ...describe(row)); });
    return line;
  });
  document.getElementById("rows").replaceChildren(
    element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...lines));
  document.getElementById("count").textContent =
    `${number(rows.length)} of ${number(swept.rows.length)} rows, ${number(onFront.size)} on the front`;
  drawMatrix(document.getElementById("matrix"), swept.boards, listed, wanted.cell, describe);
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
const filters = [["Group", (row) => row.group, "group"], ["Model", (row) => row.model, "model"], ["Board", (row) => row.board, "board"],
  ["Done", (row) => row.do, "do"], ["Options", (row) => row.options, "options"], ["Fits", outcome, "outcome"]];
document.getElementById("filters").append(
  ...filters.filter(([, of]) => several(of)).map(([label, of, name]) =>
    choice(label, [[ANY, "all"], ...distinct(of).map((value) => [value, value || "none"])], filter(name))),
  element("label", {}, "Find", find),
  element("label", {}, only, "the front alone"),
  choice("Cells", Object.entries(CELLS).map(([name, [text]]) => [name, text]), filter("cell")));
drawRows();
