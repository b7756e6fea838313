// Follows the work of the server that gave this page, and takes the next page when there is one.

const live = document.getElementById("live");
const POLL_MS = 400;

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
  const bar = live.querySelector("progress");
  bar.hidden = !state.total;
  if (state.total) {
    bar.max = state.total;
    bar.value = state.done;
  }
  if (!state.ended) setTimeout(follow, POLL_MS);
}

follow();
