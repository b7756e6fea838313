// Everything of every build, once.

const page = JSON.parse(document.getElementById("document").textContent);

page.builds.forEach((build, number_) => {
  const place = (name) => document.getElementById(`b${number_}-${name}`);
  // The pictures first: they ask for their width, and a long table would be laid out for it.
  drawArena(build, place("arena"));
  const mark = drawNetwork(build, place("network"), (index) => table.go(index));
  const table = drawOperators(build, place("operators"), mark);
  drawBars(build, place("bars"));
  drawRoofline(build, place("roofline"));
  drawChoices(build, place("choices"));
  drawMemory(build, place("memory"));
});
