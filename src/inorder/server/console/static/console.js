// The console's own script: it reloads after changes, moves through rows by keys, and keeps opened parts open.
"use strict";

// --- live: when the server reports a change, htmx reloads the parts that are marked as live

const source = document.body.dataset.live;
if (source) {
  let events = null;
  const look = () => document.body.dispatchEvent(new CustomEvent("live"));
  const listen = () => {
    if (document.hidden) {
      events?.close();
      events = null;
    } else if (!events) {
      events = new EventSource(source);
      events.onmessage = look;
      events.onopen = () => delete document.body.dataset.lost;
      events.onerror = () => {
        document.body.dataset.lost = "";
        if (events?.readyState !== EventSource.CLOSED) return; // it tries again by itself
        events = null;
        look(); // which leads to the log-in if the session is over
        setTimeout(listen, 10_000);
      };
    }
  };
  document.addEventListener("visibilitychange", listen);
  listen();
}

// Parts that a visitor has opened stay open when the page is reloaded.
htmx.registerExtension("console", {
  htmx_before_morph_attr: (node, detail) => !(node.tagName === "DETAILS" && detail.attrName === "open"),
});

// --- keys

const rows = () => [...document.querySelectorAll(".rows tbody tr")].filter((row) => row.offsetParent);
const here = () => document.activeElement.closest(".rows tbody tr"); // the row with the focus, which a loaded page keeps
const step = (by) => {
  const all = rows();
  const at = all.indexOf(here());
  const next = all[Math.min(all.length - 1, Math.max(0, at < 0 ? 0 : at + by))];
  if (!next) return;
  const inside = next.querySelector("a") ?? next.querySelector("input, summary");
  if (!inside) next.tabIndex = -1;
  (inside ?? next).focus();
  next.scrollIntoView({ block: "nearest" });
};
const keys = {
  "/": () => document.querySelector("input[type=search]")?.focus(),
  j: () => step(1),
  k: () => step(-1),
  x: () => here()?.querySelector("input[type=checkbox]")?.click(),
  g: () => document.querySelector(".brand").click(),
  "?": () => document.getElementById("keys").showModal(),
};
document.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest("input:not([type=checkbox]), textarea, select, dialog");
  if (event.key === "Escape" && isTyping) event.target.blur();
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
  event.preventDefault();
  keys[event.key]();
});
