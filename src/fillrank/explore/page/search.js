// The search box: labels are requested while the user types; the arrow keys select one.

import { request, byId, counted, titleOf, el, announce } from "./parts.js";

const PAUSE = 90; // milliseconds without a key before a request is sent

export function startSearch(about, go) {
  const input = byId("search"), panel = byId("matches"), options = byId("options"), more = byId("more");
  let side = "rows", chosen = -1, pending = null, timer = null;

  const searched = () => about.titled.includes(side) ? "label or title" : "label";

  function setSide(wanted) {
    side = wanted;
    input.setAttribute("aria-label", `Search by ${searched()}`);
    for (const name of ["rows", "columns"]) byId(`find-${name}`).setAttribute("aria-pressed", String(name === side));
    input.placeholder = `Search ${counted(about[side], side.slice(0, -1))}`;
  }

  function close() {
    clearTimeout(timer);
    if (pending) pending.abort();
    panel.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
    chosen = -1;
  }

  function mark(number) {
    const items = [...options.children];
    if (!items.length) return;
    chosen = (number + items.length) % items.length;
    items.forEach((item, i) => item.setAttribute("aria-selected", String(i === chosen)));
    items[chosen].scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", items[chosen].id);
  }

  function take(item) {
    const at = Number(item.dataset.at);
    input.value = "";
    close();
    go(side, at);
  }

  async function look() {
    if (pending) pending.abort();
    pending = new AbortController();
    const mine = pending;
    let found;
    try {
      found = await request("search", { side, part: input.value }, { signal: mine.signal });
    } catch (error) {
      if (error.name === "AbortError") return;
      options.replaceChildren();
      more.textContent = error.message;
      panel.hidden = false;
      return;
    }
    if (mine !== pending) return;
    options.replaceChildren(...found.matches.map((match, i) => el("li", {
      role: "option", id: `option-${i}`, "aria-selected": "false", "data-at": match.at,
      on: { mousedown: (event) => event.preventDefault(), click: (event) => take(event.currentTarget) },
    }, titleOf(match))));
    const left = found.total - found.matches.length;
    more.textContent = found.total === 0 ? `No ${side.slice(0, -1)} has this in its ${searched()}.`
      : left > 0 ? `and ${left.toLocaleString("en")} more: keep typing` : "";
    announce(counted(found.total, "match").replace("matchs", "matches"));
    panel.hidden = false;
    input.setAttribute("aria-expanded", "true");
    chosen = -1;
    if (input.value.trim() && found.matches.length) mark(0);
  }

  input.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(look, PAUSE); });
  input.addEventListener("focus", look);
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (panel.hidden) look();
      else mark(event.key === "ArrowDown" ? chosen + 1 : Math.max(chosen, 0) - 1);
    } else if (event.key === "Enter" && chosen >= 0 && !panel.hidden) {
      event.preventDefault();
      take(options.children[chosen]);
    } else if (event.key === "Escape") {
      close();
    }
  });
  for (const name of ["rows", "columns"]) {
    byId(`find-${name}`).addEventListener("click", () => { setSide(name); input.focus(); });
  }
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !event.ctrlKey && !event.metaKey && document.activeElement.tagName !== "INPUT") {
      event.preventDefault();
      input.focus();
    }
  });
  setSide("rows");
}
