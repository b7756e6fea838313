// Stages on devices: what they hold, how long they take, and which frame is where.

const pipeline = JSON.parse(document.getElementById("document").textContent);
const rowHeight = 34;
const devices = new Set(pipeline.stages.map((one) => one.stage)).size;

function pipelineChart(name, values, height) {
  const place = document.getElementById(name);
  if (!place) return;
  chart(place, () => {
    const spec = copied(name);
    spec.data.values = values;
    if (height) spec.height = height;
    return spec;
  });
}

pipelineChart("stages", pipeline.stages.flatMap((one) => [
  { stage: one.stage, model: one.model, part: "cached", bytes: one.param_bytes - one.streamed_bytes },
  { stage: one.stage, model: one.model, part: "streamed", bytes: one.streamed_bytes },
]), rowHeight * devices);
// By what it is spent on, where a single model tells that; else by model.
const parted = pipeline.stages.every((one) => one.parts.length) && new Set(pipeline.stages.map((one) => one.model)).size === 1;
pipelineChart("times", pipeline.stages.flatMap((one) => (parted
  ? one.parts.map(([kind, time_ms], order) => ({ ...one, kind, time_ms, order }))
  : [{ ...one, kind: one.model, order: 0 }])), rowHeight * devices);
if (pipeline.simulation) {
  pipelineChart("timeline", pipeline.simulation.spans.map(([stage, frame, begin, finish]) =>
    ({ stage, frame, begin, finish, colour: frame % 6 })), rowHeight * devices);
}
pipelineChart("devices", pipeline.devices.map(([count, period_ms]) => ({ devices: count, period_ms })));
