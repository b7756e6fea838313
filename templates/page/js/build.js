// Everything of every build, once.

const page = JSON.parse(document.getElementById("document").textContent);

page.builds.forEach((build, number_) => {
  const place = (name) => document.getElementById(`b${number_}-${name}`);
  let mark = () => {};
  const table = drawOperators(build, place("operators"), (index) => mark(index));
  mark = drawNetwork(build, place("network"), (index) => table.go(index));
  drawArena(build, place("arena"));
  drawBars(build, place("bars"));
  drawRoofline(build, place("roofline"));
  drawChoices(build, place("choices"));
  drawMemory(build, place("memory"));
});
