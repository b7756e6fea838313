// Everything of every build, once.

const page = JSON.parse(document.getElementById("document").textContent);

page.builds.forEach((build, number_) => {
  const place = (name) => document.getElementById(`b${number_}-${name}`);
  let mark = () => {};
  const row = drawOperators(build, place("operators"), (index) => { row(index, false); mark(index); });
  mark = drawNetwork(build, place("network"), (index) => { row(index, true); mark(index); });
  drawArena(build, place("arena"));
  drawBars(build, place("bars"));
  drawRoofline(build, place("roofline"));
  drawChoices(build, place("choices"));
  drawMemory(build, place("memory"));
});
