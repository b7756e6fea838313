// The charts, drawn by Vega-Lite; the page's colours and values go into their specifications.

const MOST_BARS = 30;
const dark = matchMedia("(prefers-color-scheme: dark)");
const specifications = JSON.parse(document.getElementById("specifications").textContent);

function theme(printing) {
  const night = dark.matches && !printing;
  const ink = night ? "#e4e9ee" : "#1b2430", line = night ? "#36414d" : "#d3dae1";
  const text = { labelColor: ink, titleColor: ink };
  return { background: "transparent", view: { stroke: line }, font: "system-ui, DejaVu Sans, sans-serif",
    axis: { ...text, gridColor: line, domainColor: line, tickColor: line }, legend: text,
    range: { category: PALETTE }, tick: { color: ink }, line: { color: ink } };
}

const charts = [];

// `make` gives the specification anew: the colours change with the scheme, and for paper.
function chart(container, make) {
  const draw = (printing) => vegaEmbed(container, { ...make(), config: theme(printing) },
    { mode: "vega-lite", actions: false, renderer: "svg", ast: true });
  charts.push(draw);
  return draw;
}

function copied(name) {
  return structuredClone(specifications[name]);
}

// The end of a long name tells more: its beginning is often that of all.
const ending = (name, length) => (name.length > length ? `…${name.slice(1 - length)}` : name);
const labelled = (operator, index) => `${index} ${ending(operator.name, 34)}`;

function drawBars(build, container) {
  const measures = [
    ["count", build.verdict.unit], ["macs", "products"], ["moved", "bytes moved"],
    ["constants", "bytes of constants"], ["live", "live bytes"],
  ];
  let measure = measures[0];
  const place = element("div", { class: "chart" });
  const draw = chart(place, () => {
    const spec = copied("bars");
    const rows = build.operators.map((operator, index) =>
      ({ label: labelled(operator, index), kind: operator.kind, value: operator[measure[0]] }));
    spec.data.values = rows.filter((row) => row.value).sort((a, b) => b.value - a.value).slice(0, MOST_BARS);
    spec.height = 18 * spec.data.values.length;
    spec.encoding.x.title = spec.encoding.tooltip[2].title = measure[1];
    const kinds = [...new Set(spec.data.values.map((row) => row.kind))];
    spec.encoding.color.scale = { domain: kinds, range: kinds.map((kind) => kindColour(kind)) };
    return spec;
  });
  container.append(element("div", { class: "tools" },
    choice("Show", measures, (name) => { measure = measures.find(([own]) => own === name); draw(false); }),
    `of the ${Math.min(MOST_BARS, build.operators.length)} operators with most`), place);
}

function drawRoofline(build, container) {
  const total = build.operators.reduce((sum, operator) => sum + operator.count, 0);
  const rows = build.operators.map((operator, index) => ({ operator, index }))
    .filter(({ operator }) => operator.macs && operator.count && operator.moved)
    .map(({ operator, index }) => ({
      label: labelled(operator, index), kind: operator.kind, share: operator.count / total,
      cycles: operator.count / operator.macs, intensity: operator.macs / operator.moved,
      bound: operator.bound ? operator.bound / operator.macs : null,
    }));
  if (!rows.length) {
    container.append("No operator has products.");
    return;
  }
  chart(container, () => {
    const spec = copied("roofline");
    const kinds = [...new Set(rows.map((row) => row.kind))];
    spec.data.values = rows;
    const { y, color, shape } = spec.layer[1].encoding;
    if (rows.every((row) => row.bound === null)) spec.layer.shift();
    y.title = `${build.verdict.unit} for a product`;
    color.scale = { domain: kinds, range: kinds.map((kind) => kindColour(kind)) };
    shape.scale = { domain: kinds };
    return spec;
  });
}

function drawChoices(build, container) {
  if (!container) return;
  chart(container, () => {
    const spec = copied("choices");
    spec.data.values = build.choices.map((one) => ({
      ram: one.ram, flash: bytes(one.flash), time: one.milliseconds ?? one.count, what: one.what, command: one.command,
    }));
    spec.encoding.y.title = build.choices[0].milliseconds === null ? build.verdict.unit : "milliseconds";
    return spec;
  });
}

function drawMemory(build, container) {
  chart(container, () => {
    const spec = copied("memory");
    spec.data.values = [build.verdict.flash, build.verdict.ram].flatMap((amount, at) =>
      amount.parts.map(([part, held], order) => ({ memory: amount.name, part, bytes: held, order: 10 * at + order })))
      .filter((row) => row.bytes > 0);
    return spec;
  });
}

const drawCharts = (printing) => Promise.all(charts.map((draw) => draw(printing)));
