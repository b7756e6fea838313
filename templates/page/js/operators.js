// The table of operators, and what is known of the one that was chosen.

function operatorColumns(build) {
  const { unit } = build.verdict;
  const clock = unit === "cycles" ? build.clock_hz : 0;
  const total = build.operators.reduce((sum, operator) => sum + operator.count, 0);
  const columns = [
    ["#", (o) => o.index, number],
    ["name", (o) => o.name, String],
    ["kind", (o) => o.kind, String],
    ["blocks", (o) => o.calls, number, "more"],
    [unit, (o) => o.count, number],
    ["share", (o) => o.count / (total || 1), (value) => `${(100 * value).toFixed(1)}%`],
  ];
  if (clock) columns.push(["ms", (o) => (1e3 * o.count) / clock, (value) => value.toFixed(3), "more"]);
  columns.push(
    ["products", (o) => o.macs, number, "more"],
    ["for a product", (o) => (o.macs ? o.count / o.macs : null), (value) => value.toFixed(2), "more"],
    ["bytes moved", (o) => o.moved, number, "more"],
    ["constants", (o) => o.constants, number, "more"],
    ["live bytes", (o) => o.live, number, "more"],
    ["scratch", (o) => o.scratch, number, "more"],
  );
  return columns.map(([title, value, show, room = ""]) => ({ title, value, show, room }));
}

const WHOLE_ROWS = 120; // a longer table scrolls in a frame of its own

function drawOperators(build, container, chosen) {
  container.classList.add("operators");
  container.classList.toggle("long", build.operators.length > WHOLE_ROWS);
  const columns = operatorColumns(build);
  const longest = Math.max(1, ...build.operators.map((operator) => operator.count));
  const rows = build.operators.map((operator, index) =>
    operatorRow({ ...operator, index, length: operator.count / longest }, columns, (row) => open(row)));
  const body = element("tbody");
  const count = element("span");
  const sorted = { column: 0, falling: false };
  const filter = element("input", { type: "search", placeholder: "name, kind or function" });
  const show = () => {
    const wanted = filter.value.toLowerCase();
    const { value } = columns[sorted.column];
    const kept = rows.filter((row) => row.text.includes(wanted));
    kept.sort((a, b) => compared(value(a.operator), value(b.operator)) * (sorted.falling ? -1 : 1) || a.operator.index - b.operator.index);
    body.replaceChildren(...kept.map((row) => row.row));
    count.textContent = `${kept.length} of ${rows.length} operators`;
  };
  filter.addEventListener("input", show);
  const heads = columns.map(({ title, value, room }, index) => {
    const button = element("button", { type: "button" }, title);
    const head = element("th", { scope: "col", "aria-sort": "none" }, button);
    if (room) head.classList.add(room);
    if (rows.length && typeof value(rows[0].operator) !== "string") head.classList.add("number");
    button.addEventListener("click", () => {
      sorted.falling = sorted.column === index ? !sorted.falling : head.classList.contains("number");
      sorted.column = index;
      heads.forEach((other) => other.setAttribute("aria-sort", "none"));
      head.setAttribute("aria-sort", sorted.falling ? "descending" : "ascending");
      heads.forEach((other, at) => { other.firstChild.textContent = columns[at].title + (at === index ? (sorted.falling ? " ▼" : " ▲") : ""); });
      show();
    });
    return head;
  });
  const table = element("table", {}, element("thead", {}, element("tr", {}, ...heads)), body);
  const openBelow = opener(columns.length);
  const mark = (index) => rows.forEach(({ row, operator }) => row.classList.toggle("chosen", operator.index === index));
  const open = (index) => {
    mark(index);
    chosen(index);
    openBelow(rows[index].row, ...operatorDetail(build, build.operators[index], true));
  };
  container.append(
    element("div", { class: "tools" }, element("label", {}, "Filter", filter), count,
      element("span", { class: "narrow" }, "A row shows the figures that have no room here.")),
    element("div", { class: "rows", tabindex: 0, role: "region", "aria-label": "The table of operators" }, table));
  show();
  return { mark, go: (index) => {
    const { row } = rows[index];
    if (!row.isConnected) { filter.value = ""; show(); }
    if (row.nextSibling?.className !== "opened") open(index);
    row.scrollIntoView({ block: "center" });
    row.focus({ preventScroll: true });
  } };
}

function compared(a, b) {
  if (a === null || b === null) return (a === null) - (b === null);
  return typeof a === "string" ? a.localeCompare(b) : a - b;
}

function operatorRow(operator, columns, chosen) {
  const cells = columns.map(({ title, value, show, room }) => {
    const found = value(operator);
    const cell = element("td", typeof found === "string" ? {} : { class: "number" }, found === null ? "-" : show(found));
    if (room) cell.classList.add(room);
    if (title === "name") {
      cell.classList.add("name");
      if (operator.functions.length) cell.append(element("code", {}, operator.functions.join(", ")));
    }
    if (title === "share") {
      cell.classList.add("share");
      const bar = element("span", { class: "bar" });
      bar.style.width = `${100 * operator.length}%`;
      cell.append(bar);
    }
    return cell;
  });
  const row = element("tr", { tabindex: 0 }, ...cells);
  row.addEventListener("click", () => chosen(operator.index));
  row.addEventListener("keydown", (event) => {
    if (event.key === "Enter") chosen(operator.index);
  });
  const text = [operator.name, operator.kind, ...operator.functions].join(" ").toLowerCase();
  return { row, operator, text };
}

// All that is known of an operator; `whole`: with its hot loops.
function operatorDetail(build, operator, whole) {
  const { steps } = operator, { unit } = build.verdict;
  const total = build.operators.reduce((sum, other) => sum + other.count, 0);
  const facts = [
    ["C functions", operator.functions.join(", ") || "none: a view"],
    [unit, `${number(operator.count)} (${percent(operator.count, total)}), ${operator.basis}`],
  ];
  if (operator.instructions !== null) facts.push(["instructions", number(operator.instructions)]);
  facts.push(
    ["products", operator.macs ? `${number(operator.macs)}, ${(operator.count / operator.macs).toFixed(2)} ${unit} each` : "none"],
    ["bytes", `${number(operator.moved)} moved, ${number(operator.constants)} of constants`],
    ["in the arena", `up to ${bytes(operator.live)} live, ${bytes(operator.scratch)} of it scratch`],
    ["steps", steps.length > 8 ? `${steps.length} steps from ${steps[0]} to ${steps[steps.length - 1]}` : steps.join(", ")],
    ["place", operator.place],
  );
  const loops = whole ? build.loops.filter((loop) => loop.operators.some((part) => part.name === operator.name)) : [];
  const texts = loops.map((loop) => element("div", {},
    element("strong", {}, `${loop.function}: ${(100 * loop.share).toFixed(1)}% of all cycles, ${loop.cycles_per_iteration.toFixed(2)} cycles an iteration`),
    element("pre", { tabindex: 0 }, loopText(loop))));
  if (whole && !texts.length && operator.functions.length) {
    texts.push(element("p", {}, build.loops.length
      ? "None of the hottest loops is in this operator."
      : "A profile with a trace shows its hot loops: thimble report with --profile."));
  }
  return [element("h3", {}, `${operator.kind} ${operator.name}`), told(facts), ...texts];
}

function loopText(loop) {
  const lines = loop.instructions.map((line) => {
    const cycles = (line.core_cycles + line.fetch_cycles + line.data_cycles) / (loop.iterations || 1);
    return `${line.address.toString(16).padStart(10)}  ${line.text.padEnd(44)} ${number(line.executions).padStart(12)} ${cycles.toFixed(2).padStart(8)}`;
  });
  return [`${"address".padStart(10)}  ${"instruction".padEnd(44)} ${"runs".padStart(12)} ${"cycles".padStart(8)}`, ...lines].join("\n");
}
