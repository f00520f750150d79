// Browsers start no worker for a page that was opened from disk, and the search is one. There its script
// runs in a hidden frame, and the two talk as a page and its worker do. Plugin offline of the theme would
// fetch the like of this file from elsewhere, unless one of this name is in `extra.polyfills`.
if (location.protocol === "file:") {
  window.Worker = window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.srcdoc = "<!doctype html>";
      this.inside = new Promise((done, failed) => {
        this.frame.addEventListener("load", () => {
          const inside = this.frame.contentWindow;
          inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", {data}));
          const script = inside.document.createElement("script");
          script.src = new URL(url, document.baseURI);
          script.onload = () => done(inside);
          script.onerror = failed;
          inside.document.body.append(script);
        }, {once: true});
      });
      document.body.append(this.frame);
    }

    postMessage(data) {
      this.inside.then(inside => inside.dispatchEvent(new inside.MessageEvent("message", {data})));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
