// Draws the charts, and anew for another scheme and for paper.

dark.addEventListener("change", () => drawCharts(false));
addEventListener("beforeprint", () => drawCharts(true));
addEventListener("afterprint", () => drawCharts(false));
drawCharts(false).then(() => { document.body.dataset.ready = "yes"; });
