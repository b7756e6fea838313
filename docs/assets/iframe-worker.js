/* Search from disk. A browser starts no Worker for a page that it opened from a file; here the
   script of the worker runs in a hidden frame instead. The theme's search looks for the name
   IFrameWorker in the page around it to know this. */
class IFrameWorker extends EventTarget {
  constructor(url) {
    super();
    this.frame = document.createElement("iframe");
    this.frame.hidden = true;
    document.body.append(this.frame);

    const page = this.frame.contentDocument;
    page.open();
    page.write("<!doctype html><title>Search</title>");
    page.close();

    const inside = this.frame.contentWindow;
    inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }));
    inside.importScripts = (...scripts) => scripts.reduce(
      (earlier, script) => earlier.then(() => load(page, script)), Promise.resolve());
    this.ready = inside.importScripts(new URL(url, document.baseURI).href);
  }

  postMessage(data) {
    this.ready.then(
      () => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
  }

  terminate() {
    this.frame.remove();
  }
}

function load(page, source) {
  return new Promise((loaded, failed) => {
    const script = page.createElement("script");
    script.src = source;
    script.onload = loaded;
    script.onerror = failed;
    page.head.append(script);
  });
}

window.IFrameWorker = IFrameWorker;
if (location.protocol === "file:") {
  window.Worker = IFrameWorker;
}
