// Models by boards: a cell for the quickest row of each pair that fits, or why none does.

const CELLS = {
  time: ["milliseconds of an inference", (row) => milliseconds(row.milliseconds)],
  ram: ["RAM, KiB", (row) => kibibytes(row.ram)],
  flash: ["flash, KiB", (row) => kibibytes(row.flash)],
  arena: ["arena, KiB", (row) => kibibytes(row.arena)],
};

const kibibytes = (value) => (value === null ? null : (value / 1024).toLocaleString("en-US", { maximumFractionDigits: value < 10240 ? 1 : 0 }));
const milliseconds = (value) => (value === null ? null : value.toLocaleString("en-US", { maximumSignificantDigits: 3 }));

// Of two rows of a pair: one that fits, then the quicker one.
function better(one, other) {
  if (!one || one.ok !== other.ok) return one?.ok ? one : other;
  return (other.milliseconds ?? Infinity) < (one.milliseconds ?? Infinity) ? other : one;
}

// What a board lacks for a row, as short as a cell.
function lack(row, board) {
  if (row.kind !== "does-not-fit") return row.kind;
  const short = [["RAM", row.ram, board.ram_bytes], ["flash", row.flash, board.flash_bytes]]
    .filter(([, needed, there]) => there && needed > there).map(([name]) => name);
  return `✗ ${short.join(", ") || "room"}`;
}

function drawMatrix(place, boards, rows, cell, describe) {
  const shown = boards.filter((board) => rows.some((row) => row.board === board.name));
  const models = new Map();
  for (const row of rows) {
    const pairs = models.get(row.model) ?? new Map();
    pairs.set(row.board, better(pairs.get(row.board), row));
    models.set(row.model, pairs);
  }
  const groups = [...new Set(rows.map((row) => row.group))];
  const groupOf = ([, pairs]) => groups.indexOf(pairs.values().next().value.group);
  const open = opener(shown.length + 1);
  const heads = shown.map((board) => element("th", { scope: "col" }, board.name,
    element("small", {}, `${board.core.replace("cortex-", "")}${board.clock_hz ? ` ${number(board.clock_hz / 1e6)} MHz` : ""}`),
    element("small", {}, board.ram_bytes ? `${kibibytes(board.ram_bytes)} / ${kibibytes(board.flash_bytes)}` : "")));
  const lines = [...models].sort((a, b) => groupOf(a) - groupOf(b)).map(([model, pairs]) => {
    const { group } = pairs.values().next().value;
    const line = element("tr", {}, element("th", { scope: "row", class: "name" }, model, element("small", {}, group)));
    for (const board of shown) {
      const row = pairs.get(board.name);
      if (!row) {
        line.append(element("td", {}, ""));
        continue;
      }
      const button = element("button", { type: "button", "aria-label": `${model} on ${board.name}: ${row.ok ? "fits" : row.kind}` },
        row.ok ? (CELLS[cell][1](row) ?? "fits") : lack(row, board));
      button.addEventListener("click", () => open(line, ...describe(row)));
      line.append(element("td", { class: row.ok ? "fits" : row.kind === "does-not-fit" ? "unfit" : "failed" }, button));
    }
    return line;
  });
  place.replaceChildren(element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Models by boards" },
    element("table", {}, element("thead", {}, element("tr", {}, element("th", { scope: "col" }, CELLS[cell][0],
      element("small", {}, "core, clock"), element("small", {}, "KiB of RAM / flash")), ...heads)), element("tbody", {}, ...lines))),
  legend([["var(--fits)", "fits"], ["var(--unfit)", "does not fit"]]));
}
