// The network: boxes and lines where the layout put them, in as many columns as the frame has room for.
// The frame scrolls as any part of a page does; it is dragged with a mouse, and zoomed with keys or buttons.

const MARGIN = 16, GUTTER = 60, MOST_COLUMNS = 12, TALL = 560, READABLE = 0.75, LEGIBLE = 0.3;
const BEND = 14; // room above the boxes of a further column, for the line that comes from the one before
const LETTER = 5.8; // pixels of a label
const ZOOMS = { least: 0.04, most: 4, step: 1.25 };

const MEASURES = {
  time: ["time", (operator) => operator.count],
  memory: ["live bytes", (operator) => operator.live],
  kernel: ["kernel", null],
};

function drawNetwork(build, container, chosen) {
  container.classList.add("network");
  const frame = element("div", { class: "frame", tabindex: 0, role: "region",
    "aria-label": "The network's picture: arrow keys scroll, + and - zoom, 0 fits" });
  const panel = element("aside", { class: "detail", "aria-live": "polite", hidden: "" });
  const key = element("div");
  const wide = container.clientWidth - 2, plans = Array.from({ length: MOST_COLUMNS }, (_, at) => folded(build.network, at + 1));
  const across = (plan) => Math.min(1, wide / plan.width), down = (plan) => Math.min(1, TALL / plan.height);
  const plan = plans.reduce((best, other) =>
    (across(other) >= READABLE && down(other) * across(other) > down(best) * across(best) + 1e-3 ? other : best));
  const { svg, nodes } = networkPicture(build, plan);
  const view = zoomed(frame, svg, plan);
  const choose = (number_) => {
    nodes.forEach(({ group }, at) => group.classList.toggle("chosen", at === number_));
    if (number_ >= 0) describeBox(build, number_, panel, chosen, () => { choose(-1); nodes[number_].group.focus(); });
    else panel.hidden = true;
  };
  nodes.forEach(({ group }, at) => {
    group.addEventListener("click", () => choose(at));
    group.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(at); }
    });
  });
  walkWithArrows(nodes.map(({ group }) => group));
  container.addEventListener("keydown", (event) => { if (event.key === "Escape") choose(-1); });
  frame.append(svg);
  container.append(element("div", { class: "tools" },
    choice("Colour by", Object.entries(MEASURES).map(([name, [text]]) => [name, text]), (name) => paint(build, nodes, key, name)),
    ...finder(build, nodes, view), ...view.buttons), element("div", { class: "view" }, frame, panel), key);
  paint(build, nodes, key, "time");
  view.begin(Math.max(READABLE, across(plan)));
  return (row) => nodes.forEach(({ group, box }) => group.classList.toggle("chosen", box.operators.includes(row)));
}

// The picture cut at single lines and laid side by side; `at` and `route` move points of the layout there.
function folded(network, columns) {
  const cuts = [];
  for (let column = 1; column < columns; column += 1) {
    const wanted = (network.height * column) / columns;
    const cut = network.cuts.reduce((best, one) => (best && Math.abs(best[1] - wanted) <= Math.abs(one[1] - wanted) ? best : one), null);
    if (cut && cut[1] > (cuts.at(-1) ?? 0)) cuts.push(cut[1]);
  }
  const [boxWidth] = network.box, starts = [-MARGIN, ...cuts], ends = [...cuts, network.height + MARGIN];
  const column = (y) => starts.findLastIndex((start) => y >= start);
  const spans = starts.map(() => [Infinity, -Infinity]);
  const hold = (x, y, half) => {
    const span = spans[column(y)];
    span[0] = Math.min(span[0], x - half);
    span[1] = Math.max(span[1], x + half);
  };
  network.boxes.forEach(({ x, y }) => hold(x, y, boxWidth / 2));
  for (const line of network.lines) {
    line.points.forEach(([x, y]) => hold(x, y, 0));
    const { text, x, y, side } = labelOf(line, line.points);
    hold(x + (side * LETTER * text.length) / 2, y, (LETTER * text.length) / 2);
  }
  const lefts = [];
  let reached = MARGIN;
  for (const [low, high] of spans) {
    lefts.push(reached);
    reached += high - low + GUTTER;
  }
  const at = ([x, y]) => {
    const own = column(y);
    return [x - spans[own][0] + lefts[own], y - starts[own] + (own && BEND)];
  };
  const route = (points) => points.flatMap((point, index) => {
    const before = points[index - 1];
    if (!before || column(before[1]) === column(point[1])) return [at(point)];
    const [first, second] = [column(before[1]), column(point[1])], [low, high] = [Math.min(first, second), Math.max(first, second)];
    const gutter = lefts[high] - GUTTER / 2;
    const end = ends[low] - starts[low] + (low && BEND) + 6;
    const bend = [[0, end], [gutter, end], [gutter, 6], [0, 6]];
    if (first > second) bend.reverse();
    bend[0][0] = at(before)[0];
    bend[3][0] = at(point)[0];
    return [...bend, at(point)];
  });
  return { at, route, width: reached - GUTTER + MARGIN, height: Math.max(...ends.map((end, own) => end - starts[own])) + BEND + 12 };
}

function networkPicture(build, { at, route, width, height }) {
  const { boxes, lines, box: [boxWidth, boxHeight] } = build.network;
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, role: "group",
    "aria-label": `${build.operators.length} operators of ${build.model}` });
  const arrow = fresh("arrow");
  svg.append(drawn("defs", {}, drawn("marker", { id: arrow, viewBox: "0 0 8 8", refX: 7, refY: 4,
    markerWidth: 7, markerHeight: 7, orient: "auto" }, drawn("path", { d: "M0 0L8 4L0 8z", fill: "#8592a0" }))));
  const labels = new Map(); // one for lines of one tensor
  for (const line of lines) {
    const corners = route(line.points);
    const path = drawn("path", { class: "edge", d: outline(corners), "marker-end": `url(#${arrow})` });
    path.append(drawn("title", {}, lineText(line)));
    svg.append(path);
    const { text, x, y, side } = labelOf(line, corners);
    labels.set(`${line.source} ${text}`, drawn("text", { class: "shape", x, y, "text-anchor": side > 0 ? "start" : "end" }, text));
  }
  const nodes = boxes.map((box) => {
    const [x, y] = at([box.x, box.y]);
    const operator = build.operators[box.operators[0]];
    const rect = drawn("rect", { x: x - boxWidth / 2, y: y - boxHeight / 2, width: boxWidth, height: boxHeight, rx: box.side ? 20 : 5 });
    const first = drawn("text", { x: x - boxWidth / 2 + 10, y: y - 4, class: "kind" },
      box.side ? box.side : shortened(`${box.operators[0]} ${operator.kind}`, 24));
    const second = drawn("text", { x: x - boxWidth / 2 + 10, y: y + 11 });
    const group = drawn("g", { class: `node ${box.side}`, tabindex: -1, role: "button",
      "aria-label": `${box.side || operator.kind} ${box.name}: show details` }, rect, first, second);
    tipFor(group, () => [box.name, operator && !box.side ? operatorLines(build, operator) : [`${box.side} ${dimensions(box.shape)}`]]);
    return { box, group, rect, second, operator };
  });
  svg.append(...labels.values(), ...nodes.map(({ group }) => group));
  return { svg, nodes };
}

// A line's shape, outside of its last bend; `side`: 1 to the right of the place, -1 to the left.
function labelOf(line, corners) {
  const text = `${dimensions(line.shape)}${line.tensors > 1 ? ` in ${line.tensors} parts` : ""}`;
  const [[x1, y1], [x2, y2]] = corners.slice(-2);
  if (Math.abs(x1 - x2) < 8) return { text, x: x2 + 6, y: y2 - 12, side: 1 };
  const side = x1 < x2 ? -1 : 1;
  return { text, x: (x1 + x2) / 2 + 5 * side, y: (y1 + y2) / 2 + 11, side };
}

const lineText = (line) => `${line.dtype} ${dimensions(line.shape)}${line.tensors > 1 ? ` and smaller, ${line.tensors} parts` : ""}: ${bytes(line.bytes)}`;

// Upright beside boxes, bent between layers.
function outline(corners) {
  return corners.map(([x, y], index) => {
    if (!index) return `M${x} ${y}`;
    const [px, py] = corners[index - 1];
    if (px === x || py === y) return `L${x} ${y}`;
    const middle = (py + y) / 2;
    return `C${px} ${middle} ${x} ${middle} ${x} ${y}`;
  }).join("");
}

function paint(build, nodes, key, name) {
  const [, measure] = MEASURES[name];
  const most = measure ? Math.max(1, ...build.operators.map(measure)) : 1;
  const total = build.operators.reduce((sum, operator) => sum + operator.count, 0);
  const kinds = new Set();
  for (const { box, rect, second, operator } of nodes) {
    if (box.side) {
      second.textContent = shortened(box.name, 26);
      continue;
    }
    kinds.add(operator.kind);
    const rows = box.operators.map((row) => build.operators[row]);
    const value = measure ? (name === "time" ? rows.reduce((sum, one) => sum + one.count, 0) : Math.max(...rows.map(measure))) : 0;
    rect.setAttribute("fill", measure ? `hsl(28 85% ${95 - Math.round((45 * Math.min(value, most)) / most)}%)` : kindColour(operator.kind));
    const blocks = operator.calls > 1 ? `, ${operator.calls} blocks` : "";
    second.textContent = {
      time: `${percent(value, total)} of time${blocks}`,
      memory: `${bytes(value)} live${blocks}`,
      kernel: shortened(operator.functions[0] ?? "no code: a view", 26),
    }[name];
  }
  key.replaceChildren(measure
    ? legend([["hsl(28 85% 95%)", "none"], ["hsl(28 85% 72%)", "half of the most"], ["hsl(28 85% 50%)", "the most"]])
    : legend([...kinds].map((kind) => [kindColour(kind), kind])));
}

// Zooming keeps the middle of the frame, or the pointer's place, where it is.
function zoomed(frame, svg, plan) {
  let scale = 1;
  const to = (wanted, x = frame.clientWidth / 2, y = frame.clientHeight / 2) => {
    const next = Math.min(ZOOMS.most, Math.max(ZOOMS.least, wanted));
    const [left, top] = [(frame.scrollLeft + x) / scale, (frame.scrollTop + y) / scale];
    scale = next;
    svg.setAttribute("width", plan.width * scale);
    svg.setAttribute("height", plan.height * scale);
    svg.classList.toggle("far", scale < LEGIBLE);
    frame.scrollTo(left * scale - x, top * scale - y);
  };
  const fit = () => to(Math.min(frame.clientWidth / plan.width, Math.max(TALL, frame.clientHeight) / plan.height));
  const acts = { "+": () => to(scale * ZOOMS.step), "-": () => to(scale / ZOOMS.step), 0: fit };
  frame.addEventListener("keydown", (event) => {
    const act = acts[event.key === "=" ? "+" : event.key];
    if (!act || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    act();
  });
  frame.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const { left, top } = frame.getBoundingClientRect();
    to(scale * Math.exp(-event.deltaY / 300), event.clientX - left, event.clientY - top);
  }, { passive: false });
  dragged(frame);
  const button = (text, label, act) => {
    const made = element("button", { type: "button", "aria-label": label, title: label }, text);
    made.addEventListener("click", act);
    return made;
  };
  const show = ({ group }) => {
    const [own, around] = [group.getBoundingClientRect(), frame.getBoundingClientRect()];
    frame.scrollBy(own.left + own.width / 2 - around.left - around.width / 2, own.top + own.height / 2 - around.top - around.height / 2);
  };
  return { show, begin: to, buttons: [button("−", "Zoom out (-)", acts["-"]), button("+", "Zoom in (+)", acts["+"]),
    button("Fit", "Show the whole network (0)", fit), button("1:1", "Full size", () => to(1))] };
}

// A mouse drags the picture; fingers and wheels scroll it already.
function dragged(frame) {
  let from = null, moved = false;
  frame.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "mouse" && event.button === 0) from = [event.clientX + frame.scrollLeft, event.clientY + frame.scrollTop];
    moved = false;
  });
  addEventListener("pointermove", (event) => {
    if (!from) return;
    const [x, y] = [from[0] - event.clientX, from[1] - event.clientY];
    moved ||= Math.hypot(x - frame.scrollLeft, y - frame.scrollTop) > 4;
    if (moved) frame.scrollTo(x, y);
  });
  addEventListener("pointerup", () => { from = null; });
  frame.addEventListener("click", (event) => { if (moved) event.stopPropagation(); }, true);
}

// Enter goes to the next box whose name, kind, function or shape has the text.
function finder(build, nodes, view) {
  const field = element("input", { type: "search", placeholder: "name, kind or 16×16" });
  const said = element("span", { role: "status" });
  const texts = nodes.map(({ box }, at) => [box.side, box.name, dimensions(box.shape),
    ...box.operators.flatMap((row) => [build.operators[row].kind, ...build.operators[row].functions]),
    ...build.network.lines.filter((line) => line.source === at).map((line) => dimensions(line.shape))].join(" ").toLowerCase());
  let hits = [], current = -1;
  const go = (step) => {
    if (!hits.length) return;
    current = (current + step + hits.length) % hits.length;
    nodes.forEach(({ group }, at) => group.classList.toggle("current", at === hits[current]));
    view.show(nodes[hits[current]]);
    said.textContent = `${current + 1} of ${hits.length}`;
  };
  field.addEventListener("input", () => {
    const wanted = field.value.trim().toLowerCase().replaceAll("x", "×"), plain = field.value.trim().toLowerCase();
    hits = plain ? texts.flatMap((text, at) => (text.includes(plain) || text.includes(wanted) ? [at] : [])) : [];
    current = -1;
    nodes.forEach(({ group }, at) => {
      group.classList.toggle("found", hits.includes(at));
      group.classList.remove("current");
      group.classList.toggle("faded", plain !== "" && !hits.includes(at));
    });
    said.textContent = plain && !hits.length ? "none" : "";
    go(1);
  });
  field.addEventListener("keydown", (event) => { if (event.key === "Enter") go(event.shiftKey ? -1 : 1); });
  return [element("label", {}, "Find", field), said];
}

function describeBox(build, number_, panel, chosen, close) {
  const { boxes, lines } = build.network, box = boxes[number_];
  const facts = box.side ? [[box.side, dimensions(box.shape)]] : [];
  for (const line of lines) {
    if (line.target === number_) facts.push([`from ${boxName(build, line.source)}`, lineText(line)]);
    if (line.source === number_) facts.push([`to ${boxName(build, line.target)}`, lineText(line)]);
  }
  const shut = element("button", { type: "button", class: "close", "aria-label": "Close the details" }, "×");
  shut.addEventListener("click", close);
  const parts = box.operators.flatMap((row) => {
    const go = element("button", { type: "button" }, `Row ${row} of the table`);
    go.addEventListener("click", () => chosen(row));
    return [...operatorDetail(build, build.operators[row], row === box.operators[0]), go];
  });
  panel.hidden = false;
  panel.replaceChildren(shut, ...(box.side ? [element("h3", {}, `${box.side} ${box.name}`)] : []), ...parts, told(facts));
  panel.scrollTop = 0;
}

function boxName(build, number_) {
  const box = build.network.boxes[number_];
  return box.side || `${box.operators[0]} ${build.operators[box.operators[0]].kind}`;
}

function operatorLines(build, operator) {
  const { unit, basis } = build.verdict;
  return [
    `${operator.kind}${operator.calls > 1 ? `, ${operator.calls} blocks` : ""}`,
    `${number(operator.count)} ${unit}, ${operator.basis || basis}`,
    `${number(operator.macs)} products, ${bytes(operator.constants)} of constants`,
    `up to ${bytes(operator.live)} live`,
    operator.functions.join(", ") || "no code: a view",
  ];
}
