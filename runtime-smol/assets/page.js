// Live updates. Everything works without this file; it only saves the reload.

const waiting = document.querySelector("#waiting");
const request = document.querySelector("[data-request][data-status=pending]");
const title = document.title.replace(/^\(\d+\) /, "");

// Fetches the list that the server rendered and puts it in place of the old one.
let refreshing = Promise.resolve();
function refresh() {
  refreshing = refreshing.then(async () => {
    const reply = await fetch(waiting.dataset.list, { headers: { Accept: "text/html" } });
    if (reply.redirected || reply.status === 401) return location.reload();
    if (!reply.ok) return;
    const fresh = await reply.text();
    if (fresh.trim() !== waiting.dataset.shown) {
      waiting.dataset.shown = fresh.trim();
      const focused = document.activeElement?.getAttribute("href");
      waiting.innerHTML = fresh;
      if (focused) waiting.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus();
    }
    const count = Number(reply.headers.get("x-waiting"));
    document.title = count ? `(${count}) ${title}` : title;
  }).catch(() => {});
}

// The browser reconnects by itself with the last id; a closed stream means that the login is over.
function listen(url, changed) {
  const stream = new EventSource(url);
  stream.addEventListener("permission_request", (event) => changed(JSON.parse(event.data)));
  stream.addEventListener("open", () => changed(null));
  stream.addEventListener("error", () => {
    if (stream.readyState === EventSource.CLOSED) setTimeout(() => location.reload(), 5000);
  });
}

if (waiting) {
  listen(waiting.dataset.events, refresh);
  // Ages grow also when nothing happens.
  setInterval(() => document.hidden || refresh(), 60000);
}

if (request) {
  listen(request.dataset.events, (change) => {
    if (change?.request_id === request.dataset.request) location.reload();
  });
}
