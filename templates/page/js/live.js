// Follows the work of the server that gave this page, and takes the next page when there is one.

const live = document.getElementById("live");
const POLL_MS = 400;

const FRONT = { width: 320, height: 150, left: 54, right: 10, top: 10, bottom: 30 };

// Ways to split that were found so far: bytes to the right, slowdown upwards.
function frontPicture(found) {
  const { width, height, left, right, top, bottom } = FRONT;
  const sizes = found.map(([size]) => size);
  const least = Math.min(...sizes), most = Math.max(...sizes), slowest = Math.max(...found.map(([, by]) => by));
  const x = (size) => left + ((width - left - right) * (size - least)) / (most - least || 1);
  const y = (by) => height - bottom - ((height - top - bottom) * by) / (slowest || 1);
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, width, height, class: "front", role: "img",
    "aria-label": `${found.length} ways to split so far, from ${bytes(most)} to ${bytes(least)}` });
  const text = (value, at, anchor) => svg.append(drawn("text", { ...at, "text-anchor": anchor }, value));
  svg.append(drawn("path", { class: "axes", d: `M${left} ${top}V${height - bottom}H${width - right}` }));
  text(`${(100 * slowest).toFixed(1)}%`, { x: left - 4, y: top + 8 }, "end");
  text("0%", { x: left - 4, y: height - bottom }, "end");
  text(bytes(least), { x: left, y: height - 10 }, "start");
  text(bytes(most), { x: width - right, y: height - 10 }, "end");
  for (const [size, by] of found) svg.append(drawn("circle", { cx: x(size), cy: y(by), r: 3 }));
  return svg;
}

function showFront(found) {
  const old = live.querySelector("svg");
  if (!found.length || old?.dataset.found === String(found)) return;
  const picture = frontPicture(found);
  picture.dataset.found = found;
  if (old) old.replaceWith(picture);
  else live.append(picture);
}

async function follow() {
  let state;
  try {
    state = await (await fetch("progress")).json();
  } catch {
    live.firstChild.textContent = "The server has ended; this page stays as it is.";
    live.querySelector("progress").hidden = true;
    return;
  }
  if (state.version !== Number(live.dataset.live)) {
    location.reload();
    return;
  }
  live.firstChild.textContent = state.text;
  live.dataset.ended = state.ended;
  if (state.ended) live.querySelector("svg")?.remove();
  else showFront(state.found);
  const bar = live.querySelector("progress");
  bar.hidden = !state.total;
  if (state.total) {
    bar.max = state.total;
    bar.value = state.done;
  }
  if (!state.ended) setTimeout(follow, POLL_MS);
}

follow();
