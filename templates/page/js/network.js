// The network: a box for each operator, where the layout put it.

const BOX = { width: 170, height: 40, margin: 16 };

const MEASURES = {
  time: ["time", (operator) => operator.count],
  memory: ["live bytes", (operator) => operator.live],
  kernel: ["kernel", null],
};

function drawNetwork(build, container, chosen) {
  container.classList.add("network");
  const colour = colours();
  const frame = element("div", { class: "frame", tabindex: 0, role: "region", "aria-label": "The network's picture" });
  const key = element("div");
  const nodes = [];
  const paint = (name) => {
    const [, measure] = MEASURES[name];
    const most = measure ? Math.max(1, ...build.operators.map(measure)) : 1;
    const total = build.operators.reduce((sum, operator) => sum + operator.count, 0);
    build.operators.forEach((operator, index) => {
      const { box, second } = nodes[index];
      const part = measure ? Math.round((100 * measure(operator)) / most) : 0;
      box.setAttribute("fill", measure ? `hsl(28 85% ${95 - 0.45 * part}%)` : colour.get(operator.kind));
      second.textContent = {
        time: `${percent(operator.count, total)} of time`,
        memory: `${bytes(operator.live)} live`,
        kernel: shortened(operator.functions[0] ?? "no code: a view", 27),
      }[name];
    });
    key.replaceChildren(measure
      ? legend([["hsl(28 85% 95%)", "none"], ["hsl(28 85% 72%)", "half of the most"], ["hsl(28 85% 50%)", "the most"]])
      : legend([...new Set(build.operators.map((operator) => operator.kind))].map((kind) => [colour.get(kind), kind])));
  };
  container.append(
    element("div", { class: "tools" }, choice("Colour by", Object.entries(MEASURES).map(([name, [text]]) => [name, text]), paint)),
    frame, key);
  frame.append(networkPicture(build, nodes, chosen));
  paint("time");
  return (index) => nodes.forEach(({ group }, at) => group.classList.toggle("chosen", at === index));
}

function networkPicture(build, nodes, chosen) {
  const { width, height, margin } = BOX;
  const places = [...build.operators.map(({ x, y }) => [x, y]), ...build.edges.flatMap((edge) => edge.points)];
  const wide = Math.max(0, ...places.map(([x]) => x)) + width + 2 * margin;
  const high = Math.max(0, ...places.map(([, y]) => y)) + height + 2 * margin;
  const at = ([x, y]) => [x + margin + width / 2, y + margin + height / 2];
  const svg = drawn("svg", { width: wide, height: high, viewBox: `0 0 ${wide} ${high}`, role: "group",
    "aria-label": `${build.operators.length} operators of ${build.model}` });
  const arrow = fresh("arrow");
  svg.append(drawn("defs", {}, drawn("marker", { id: arrow, viewBox: "0 0 8 8", refX: 7, refY: 4,
    markerWidth: 7, markerHeight: 7, orient: "auto" }, drawn("path", { d: "M0 0L8 4L0 8z", fill: "#8592a0" }))));
  for (const edge of build.edges) {
    if (edge.source < 0) continue;
    const corners = edge.points.map(at);
    corners[0][1] += height / 2;
    corners[corners.length - 1][1] -= height / 2;
    const line = drawn("path", { class: "edge", d: `M${corners.map((c) => c.join(" ")).join("L")}`, "marker-end": `url(#${arrow})` });
    line.append(drawn("title", {}, bytes(edge.bytes)));
    svg.append(line);
  }
  build.operators.forEach((operator, index) => {
    const x = operator.x + margin, y = operator.y + margin;
    const box = drawn("rect", { x, y, width, height });
    const first = drawn("text", { x: x + 8, y: y + 16, fill: "#101418", "font-weight": 600 },
      shortened(`${index} ${operator.kind}${operator.calls > 1 ? ` in ${operator.calls} blocks` : ""}`, 25));
    const second = drawn("text", { x: x + 8, y: y + 31 });
    for (const text of [first, second]) text.style.fill = "#101418";
    const group = drawn("g", { class: "node", tabindex: 0, role: "button",
      "aria-label": `${operator.kind} ${operator.name}: show its row` }, box, first, second);
    tipFor(group, () => [operator.name, operatorLines(build, operator)]);
    group.addEventListener("click", () => chosen(index));
    group.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); chosen(index); }
    });
    nodes.push({ group, box, second });
    svg.append(group);
  });
  return svg;
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
