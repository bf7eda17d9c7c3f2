// Elements of the views. Content of the model is always inserted as text, never as markup.

export const byId = (id) => document.getElementById(id);

// An element with properties (class, on, attributes) and children, text among them.
export function el(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "on") for (const [event, work] of Object.entries(value)) node.addEventListener(event, work);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

export const counted = (n, noun) => `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`;

// A label of the table, isolated from the direction of the text around it.
export const nameOf = (text, tag = "bdi") => el(tag, { class: text.trim() ? "name" : "name blank" }, text.trim() ? text : "(blank)");

// A row or column: its title with its label beside it, or its label if it has no title.
export const titleOf = ({ name, title }) => title === undefined ? nameOf(name)
  : el("span", {}, nameOf(title), " ", el("bdi", { class: "label" }, name));

export const announce = (text) => { byId("status").textContent = text; };

// Send a request and return the data of its response; throws an Error with a message if it fails.
export async function request(what, fields = {}, options = {}) {
  let response;
  try {
    response = await fetch(`api/${what}?${new URLSearchParams(fields)}`, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("fillrank explore does not respond. If it has ended, start it again and open the address that it prints.");
  }
  const data = await response.json().catch(() => ({ error: "the response could not be read." }));
  if (!response.ok) throw new Error(data.error || "the request failed.");
  return data;
}

export function problem(error) {
  return el("div", { class: "problem", role: "alert" }, error.message);
}

// A number format that distinguishes neighbouring values on an axis.
export function writer([low, high]) {
  const size = Math.max(Math.abs(low), Math.abs(high));
  const decimals = Math.max(0, 2 + Math.ceil(-Math.log10(high - low)));
  if (decimals > 8 || size >= 1e9) return (value) => value.toPrecision(Math.min(6, 1 + decimals));
  const format = new Intl.NumberFormat("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
  return (value) => format.format(value).replace(/^-(?=0[.0]*$)/, "");
}

// A bar over an interval, with a dot at the value.
function scaleBar(cell, [start, end]) {
  const percent = (value) => 100 * Math.min(1, Math.max(0, (value - start) / (end - start)));
  const bar = el("span", { class: "scale", "aria-hidden": "true" });
  if (!cell.known && cell.low !== null) {
    const range = el("span", { class: "range" });
    range.style.left = `${percent(cell.low)}%`;
    range.style.width = `${Math.max(0.8, percent(cell.high) - percent(cell.low))}%`;
    bar.append(range);
  }
  const dot = cell.limit ? el("span", { class: "arrow" }, cell.limit < 0 ? "←" : "→") : el("span", { class: cell.known ? "dot known" : "dot" });
  dot.style.left = `${percent(cell.value)}%`;
  bar.append(dot);
  return el("span", { class: "rail" }, bar);
}

// The probabilities of levels, as bars.
function levelBars(bars) {
  return el("ul", { class: "levels" }, ...bars.map(([name, probability]) => {
    const share = el("span", { class: "share", "aria-hidden": "true" });
    share.style.width = `${100 * probability}%`;
    return el("li", {}, nameOf(name), el("span", { class: "number" }, `${Math.round(100 * probability)}%`),
      el("span", { class: "rail" }, el("span", { class: "scale" }, share)));
  }));
}

// Cells as a table: label, value with its interval, bar. `link` returns the address of a label. In tables of
// mixed kinds, `axis` is null if cells have their own, and cells have texts and bars of levels.
export function cellTable(cells, axis, { caption, head, link = null, values = "Value" }) {
  const write = axis ? writer(axis) : String;
  const lines = cells.map((cell) => {
    const name = link ? el("a", { href: link(cell) }, titleOf(cell)) : titleOf(cell);
    const between = cell.known ? el("span", { class: "tag" }, "observed")
      : cell.low !== null ? el("span", { class: "between" }, cell.between ?? `${write(cell.low)} to ${write(cell.high)}`) : null;
    const scale = cell.axis ?? axis;
    const first = el("th", { scope: "row" }, name);
    if (cell.row !== undefined) first.prepend(el("span", { class: "of" }, nameOf(cell.row)));
    return el("tr", { class: cell.known ? "is-known" : null },
      first,
      el("td", { class: "value" }, el("span", { class: "number" }, cell.text ?? write(cell.value)), cell.bars ? null : between),
      el("td", { class: "drawn" }, cell.bars ? levelBars(cell.bars) : scale ? scaleBar(cell, scale) : ""));
  });
  const ends = axis ? el("span", { class: "ends" }, el("span", {}, write(axis[0])), el("span", {}, write(axis[1]))) : null;
  return el("table", { class: "cells" },
    el("caption", { class: "unseen" }, caption),
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, head), el("th", { scope: "col", class: "value" }, el("span", { class: "number" }, values)),
      el("th", { scope: "col", class: "drawn" }, el("span", { class: "unseen" }, "On a scale"), ends))),
    el("tbody", {}, ...lines));
}

// Buttons of which one is selected.
export function choices(label, options, chosen, choose) {
  const group = el("div", { class: "choices", role: "group", "aria-label": label });
  for (const [value, text] of options) {
    const button = el("button", { type: "button", "aria-pressed": String(value === chosen), "data-choice": value }, text);
    button.addEventListener("click", () => {
      for (const other of group.children) other.setAttribute("aria-pressed", String(other === button));
      choose(value);
    });
    group.append(button);
  }
  return group;
}
