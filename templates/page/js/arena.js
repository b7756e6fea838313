// The arena: bytes upwards, steps to the right, a block for each buffer.

const ARENA = { width: 1100, least: 350, height: 440, left: 78, right: 14, top: 26, bottom: 34 };

function drawArena(build, container) {
  container.classList.add("arena");
  const steps = build.steps.length;
  const frame = element("div");
  const kinds = [...new Set(build.buffers.map((buffer) => paintOf(build, buffer).kind))];
  const ranges = operatorRanges(build);
  const select = choice("Show", [["all", "all steps"], ...ranges.map(([name, from, to], index) =>
    [String(index), `steps ${from} to ${to - 1}: ${shortened(name, 40)}`])],
    (value) => render(value === "all" ? [0, steps] : ranges[Number(value)].slice(1)));
  const tools = element("div", { class: "tools" });
  if (ranges.length > 1) tools.append(select);
  container.append(tools, frame, legend(kinds.map((kind) => [kind === INPUT ? OUTSIDE : kindColour(kind), kind])));
  const render = ([from, to]) => {
    ARENA.width = Math.max(ARENA.least, container.clientWidth); // a letter is as large on any screen
    frame.replaceChildren(arenaPicture(build, from, to));
  };
  render([0, Math.max(steps, 1)]);
}

// The parts of the order that one can look at alone: the runs of steps with one place.
function operatorRanges(build) {
  const ranges = [];
  build.steps.forEach((step, index) => {
    const place = build.operators[step.operator].place;
    const last = ranges[ranges.length - 1];
    if (last && last[0] === place) last[2] = index + 1;
    else ranges.push([place, index, index + 1]);
  });
  return ranges.filter(([, from, to]) => to - from > 1);
}

const INPUT = "input", OUTSIDE = "#b9c2cb";

function paintOf(build, buffer) {
  if (buffer.kind === "scratch") {
    const step = build.steps[buffer.runs[0][0]];
    return { kind: step.kind, fill: kindColour(step.kind) };
  }
  const writer = buffer.tensors.map((index) => build.tensors[index].writer).find((step) => step >= 0);
  if (writer === undefined) return { kind: INPUT, fill: OUTSIDE };
  const kind = build.steps[writer].kind;
  return { kind, fill: kindColour(kind) };
}

// Rectangles [from, to) in steps and [bottom, top) in bytes of the arena.
function rectangles(buffer) {
  const found = [];
  for (let i = 0; i + 1 < buffer.runs.length; i += 1) {
    const [step, bottom, top] = buffer.runs[i];
    if (top > bottom) {
      found.push([step, buffer.runs[i + 1][0], buffer.offset + bottom, buffer.offset + top]);
    }
  }
  return found;
}

function arenaPicture(build, from, to) {
  const most = Math.max(build.arena, 1, ...build.buffers.map((b) => b.offset + b.bytes));
  const { width, height, left, right, top, bottom } = ARENA;
  const x = (step) => left + ((width - left - right) * (step - from)) / (to - from);
  const y = (at) => height - bottom - ((height - top - bottom) * at) / most;
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, role: "group",
    "aria-label": `The arena of ${build.title}, ${bytes(build.arena)}` });
  const hatch = fresh("hatch");
  svg.append(drawn("defs", {}, drawn("pattern",
    { id: hatch, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
    drawn("line", { x1: 0, y1: 0, x2: 0, y2: 6, stroke: "#101418", "stroke-width": 1.6 }))));
  drawAxes(svg, build, x, y, most, from, to);
  const shapes = [];
  for (const buffer of build.buffers) {
    const parts = rectangles(buffer).map(([a, b, low, high]) =>
      [Math.max(a, from), Math.min(b, to), low, high]).filter(([a, b]) => a < b);
    if (parts.length) shapes.push(bufferShape(build, buffer, parts, x, y));
  }
  for (const { shape } of shapes) svg.append(shape);
  for (const [step, low, high] of sharedBytes(build, from, to)) {
    svg.append(drawn("rect", { class: "shared", fill: `url(#${hatch})`, opacity: 0.45,
      x: x(step), width: x(step + 1) - x(step), y: y(high), height: Math.max(y(low) - y(high), 1) }));
  }
  for (const { label } of shapes) if (label) svg.append(label);
  drawBanks(svg, build, y);
  drawPeak(svg, build, x, y, from, to);
  walkWithArrows(shapes.map(({ shape }) => shape));
  return svg;
}

function bufferShape(build, buffer, parts, x, y) {
  const outline = parts.map(([a, b, low, high]) =>
    `M${x(a)} ${y(low)}H${x(b)}V${y(high)}H${x(a)}Z`).join("");
  const [title, lines] = bufferText(build, buffer);
  const shape = drawn("path", { d: outline, fill: paintOf(build, buffer).fill,
    class: `buffer ${buffer.kind}`, tabindex: -1, role: "img", "aria-label": [title, ...lines].join(", ") });
  tipFor(shape, () => [title, lines]);
  for (const [event, on] of [["pointerenter", true], ["pointerleave", false], ["focus", true], ["blur", false]]) {
    shape.addEventListener(event, () => shape.classList.toggle("chosen", on));
  }
  const [a, b, low, high] = parts.reduce((best, part) =>
    ((part[1] - part[0]) * (part[3] - part[2]) > (best[1] - best[0]) * (best[3] - best[2]) ? part : best));
  const text = buffer.tensors.length ? dimensions(build.tensors[buffer.tensors[0]].shape) : "scratch";
  if (x(b) - x(a) < 6.2 * text.length || y(low) - y(high) < 13) return { shape };
  return { shape, label: drawn("text", { class: "label", x: x(a) + 4, y: (y(low) + y(high)) / 2 + 4 }, text) };
}

function stepName(build, step) {
  return step < 0 ? "the caller" : `step ${step}, ${build.steps[step].kind} ${shortened(build.steps[step].name, 60)}`;
}

function bufferText(build, buffer) {
  const first = buffer.runs[0][0];
  const last = buffer.runs[buffer.runs.length - 1][0] - 1;
  const bank = build.banks.findLast((one) => one.start <= buffer.offset);
  const lines = [
    `${bytes(buffer.bytes)} at ${number(buffer.offset)}${bank ? ` in ${bank.name}` : ""}`,
    `${buffer.kind === "state" ? "state, kept from run to run; " : ""}lives from step ${first} to step ${last}`,
  ];
  if (buffer.kind === "scratch") return [`scratch of ${buffer.name}`, lines];
  const tensors = buffer.tensors.map((index) => build.tensors[index]);
  const [root] = tensors;
  if (root) {
    lines.unshift(`${root.dtype} ${dimensions(root.shape)}`);
    const writer = tensors.map((tensor) => tensor.writer).find((step) => step >= 0) ?? -1;
    lines.push(`written by ${stepName(build, writer)}`);
    const readers = [...new Set(tensors.flatMap((tensor) => tensor.readers))].sort((a, b) => a - b)
      .filter((step) => !tensors.some((tensor) => tensor.writer === step));
    const shown = readers.slice(0, 3).map((step) => stepName(build, step));
    if (readers.length > 3) shown.push(`${readers.length - 3} more steps`);
    lines.push(`read by ${shown.join("; ") || "the caller"}`);
    if (tensors.length > 1) lines.push(`${tensors.length - 1} more tensors are views of it`);
  }
  return [buffer.name, lines];
}

// Bytes that two buffers hold at one step: the kernel allows its output to grow over its input.
function sharedBytes(build, from, to) {
  const at = Array.from({ length: to - from }, () => []);
  for (const buffer of build.buffers) {
    for (const [a, b, low, high] of rectangles(buffer)) {
      for (let step = Math.max(a, from); step < Math.min(b, to); step += 1) at[step - from].push([low, high]);
    }
  }
  const found = [];
  at.forEach((held, index) => {
    held.sort((p, q) => p[0] - q[0]);
    let reached = -1;
    for (const [low, high] of held) {
      if (low < reached) found.push([from + index, low, Math.min(high, reached)]);
      reached = Math.max(reached, high);
    }
  });
  return found;
}

function drawAxes(svg, build, x, y, most, from, to) {
  const { width, left, right, height, bottom } = ARENA;
  const unit = 10 ** Math.floor(Math.log10(most / 4));
  const gap = [1, 2, 5, 10].map((n) => n * unit).find((n) => most / n <= 6);
  for (let at = 0; at <= most; at += gap) {
    svg.append(drawn("line", { class: "axis", x1: left, x2: width - right, y1: y(at), y2: y(at) }));
    svg.append(drawn("text", { x: left - 6, y: y(at) + 4, "text-anchor": "end" }, number(at)));
  }
  const every = Math.max(1, Math.ceil((to - from) / Math.min(20, width / 45)));
  for (let step = from; step < to; step += every) {
    svg.append(drawn("text", { x: (x(step) + x(step + 1)) / 2, y: height - bottom + 14, "text-anchor": "middle" }, String(step)));
  }
  svg.append(drawn("text", { x: (left + width - right) / 2, y: height - 5, "text-anchor": "middle" }, "step"));
  svg.append(drawn("text", { x: 6, y: 14 }, "bytes"));
}

// A line where each bank begins, and its name below its end; above the blocks, so that none hides it.
function drawBanks(svg, build, y) {
  const { width, left, right } = ARENA;
  for (const bank of build.banks) {
    svg.append(drawn("line", { class: "bank", x1: left, x2: width - right, y1: y(bank.start), y2: y(bank.start), "pointer-events": "none" }));
    svg.append(drawn("text", { class: "bank-name", x: width - right - 4, y: y(bank.start + bank.bytes) + 14, "text-anchor": "end" },
      `${bank.name}: ${bytes(bank.bytes)}`));
  }
}

function drawPeak(svg, build, x, y, from, to) {
  const step = build.peak_step;
  if (step < from || step >= to || !build.steps.length) return;
  const { height, top, bottom } = ARENA;
  svg.append(drawn("rect", { class: "peak", x: x(step), width: x(step + 1) - x(step), y: top,
    height: height - top - bottom, "pointer-events": "none" }));
  const middle = x(step) > ARENA.width / 2;
  svg.append(drawn("text", { class: "peak-label", x: x(step + (middle ? 1 : 0)), y: top - 7,
    "text-anchor": middle ? "end" : "start" }, `▼ peak: ${bytes(build.steps[step].live)} at step ${step}`));
}

// One stop for the Tab key; the arrow keys, Home and End go from shape to shape.
function walkWithArrows(shapes) {
  if (shapes.length) shapes[0].setAttribute("tabindex", 0);
  shapes.forEach((shape, index) => shape.addEventListener("keydown", (event) => {
    const last = shapes.length - 1;
    const [next, before] = [Math.min(index + 1, last), Math.max(index - 1, 0)];
    const to = { ArrowRight: next, ArrowDown: next, ArrowLeft: before, ArrowUp: before, Home: 0, End: last }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    shape.setAttribute("tabindex", -1);
    shapes[to].setAttribute("tabindex", 0);
    shapes[to].focus();
  }));
}
