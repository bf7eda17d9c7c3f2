// The views, by the part of the address after #: a row, a column, a file to fill, or the start.

import { announce, byId, cellTable, choices, counted, el, nameOf, problem, request, titleOf } from "./parts.js";
import { startSearch } from "./search.js";
import { fillFile, fillView, startDrops } from "./fill.js";

const PAGE = 50;
const OTHER = { rows: "columns", columns: "rows" };
const ONE = { rows: "row", columns: "column" };
const ORDERS = {
  mean: ["Expected", "Largest expected value first.", "Expected"],
  cautious: ["Cautious", "Largest 10% quantile first: the true value is below it with probability 10%.", "10% quantile"],
  curious: ["Curious", "Largest value of a random draw first, so that columns with uncertain predictions are tried.", "Drawn"],
};
let about = null;
let view = 0; // counts views, so that a late response does not show in a later one

const address = (side, at) => `#/${side}/${at}`;

function show(...nodes) {
  byId("main").replaceChildren(...nodes);
  window.scrollTo(0, 0);
}

// A part of a view that waits for its data.
function later(load, present) {
  const mine = view;
  const box = el("div", {}, el("p", { class: "quiet" }, "…"));
  const fetchInto = async (fields) => {
    box.classList.add("waiting");
    try {
      const data = await load(fields);
      if (mine === view) box.replaceChildren(...present(data));
    } catch (error) {
      if (mine === view) box.replaceChildren(problem(error));
    }
    box.classList.remove("waiting");
  };
  return [box, fetchInto];
}

function startView() {
  const facts = [
    ["Rows", about.rows.toLocaleString("en")],
    ["Columns", about.columns.toLocaleString("en")],
    ["Observed values", about.entries === null ? "not in this file" : `${about.entries.toLocaleString("en")} (${percent(about.entries / (about.rows * about.columns))} of the cells)`],
    ["Method", about.method],
    ["Factors", about.rank.toLocaleString("en")],
  ];
  const [some, load] = later(() => Promise.all(["rows", "columns"].map((side) => request("search", { side, part: "" }))), (found) =>
    ["rows", "columns"].map((side, i) => el("p", { class: "some" }, el("span", { class: "quiet" }, `Some ${side}: `),
      ...found[i].matches.slice(0, 8).map((match) => el("a", { class: "chip", href: address(side, match.at) }, titleOf(match))))));
  show(
    el("section", { class: "card" },
      el("h1", {}, nameOf(about.title)),
      el("p", {}, "This model fills in the missing values of a table. Search a row or a column above to see its values, observed and filled in, or start with one of these."),
      some,
      el("dl", { class: "facts" }, ...facts.flatMap(([what, text]) => [el("div", {}, el("dt", {}, what), el("dd", {}, text))])),
      ...notes()),
    ...(about.mixed ? [] : [el("section", { class: "card" },
      el("h2", {}, "Fill in your own table"),
      el("p", {}, "Drop a CSV file anywhere on this page, or ", el("a", { href: "#/fill" }, "choose one"), ": the model fills in its missing values."))]));
  load();
}

const percent = (share) => `${(100 * share).toPrecision(2).replace(/\.0$/, "")}%`.replace("1e+2", "100");

function notes() {
  const found = [];
  if (about.not_converged !== null) found.push(`This fit has ${about.not_converged} Its values and intervals are not reliable.`);
  if (about.entries === null) found.push("The model was saved without the entries of the table, so all values are predictions. Save it with_data=True to see which are observed.");
  if (!about.intervals) found.push(`${about.method} has no intervals. GASR and BPMF have them.`);
  return found.map((text) => el("p", { class: "note" }, text));
}

function lineView(side, at) {
  const title = el("h1", {}, "…");
  const under = el("p", { class: "quiet" }, ONE[side]);
  const state = { order: "high", shown: "all", start: 0 };
  const [box, load] = later(() => request("line", { side, at, ...state }), (line) => {
    title.replaceChildren(titleOf(line));
    const name = line.title ?? line.name;
    document.title = `${name} · ${about.title}`;
    under.textContent = line.known === null ? `${ONE[side]} · ${counted(line.n, "value")}`
      : `${ONE[side]} · ${counted(line.known, "value")} observed, ${(line.n - line.known).toLocaleString("en")} filled in`;
    // Not on later loads: a button that is moved loses the focus.
    if (line.ordered && order.parentNode !== controls) controls.prepend(order);
    if (line.cells.length === 0) return [el("p", { class: "quiet" }, state.shown === "known" ? "No value is observed." : "No value is missing.")];
    return [
      cellTable(line.cells, line.axis, {
        caption: `Values of ${name}`, head: ONE[OTHER[side]][0].toUpperCase() + ONE[OTHER[side]].slice(1),
        link: (cell) => address(OTHER[side], cell.at),
      }),
      ...(line.total > PAGE ? [pager(line, (start) => { state.start = start; reload(); })] : []),
    ];
  });
  const reload = async () => { await load(); announce("Values shown"); };
  const change = (name) => (value) => { state[name] = value; state.start = 0; reload(); };
  const order = choices("Order", [["high", "Highest first"], ["low", "Lowest first"]], "high", change("order"));
  const controls = el("div", { class: "controls" },
    about.entries === null ? null : choices("Which", [["all", "All"], ["known", "Observed"], ["filled", "Filled in"]], "all", change("shown")));
  const level = Math.round(100 * about.level);
  const legend = el("p", { class: "legend" },
    about.entries === null ? null : el("span", {}, el("span", { class: "dot known" }), " observed value"),
    el("span", {}, el("span", { class: "dot" }), " filled-in value"),
    about.intervals ? el("span", {}, el("span", { class: "range" }), ` ${level}% interval for a new observation`) : null,
    about.limits ? el("span", {}, el("span", { class: "arrow" }, "→"), " only a limit is known") : null,
    about.mixed && side === "rows" ? el("span", {}, "each column has its own scale; bars are probabilities") : null);
  const values = el("section", { class: "card", id: "values" }, el("h2", {}, "Values"), controls, legend, box);
  const aside = el("div", { class: "aside" }, ...(side === "rows" && about.orders.length ? [recommendCard(at)] : []), nearestCard(side, at));
  show(el("div", { class: "title" }, title, under, ...notes()), el("div", { class: "columns" }, values, aside));
  load();
}

function pager(line, goTo) {
  const last = Math.floor((line.total - 1) / PAGE) * PAGE;
  const end = Math.min(line.start + PAGE, line.total);
  const button = (text, label, start, off) => el("button", { type: "button", "aria-label": label, disabled: off, on: { click: () => { goTo(start); byId("values").scrollIntoView(); } } }, text);
  return el("div", { class: "pager" },
    button("«", "First page", 0, line.start === 0),
    button("‹", "Previous page", line.start - PAGE, line.start === 0),
    el("span", {}, `${(line.start + 1).toLocaleString("en")} to ${end.toLocaleString("en")} of ${line.total.toLocaleString("en")}`),
    button("›", "Next page", line.start + PAGE, end === line.total),
    button("»", "Last page", last, end === line.total));
}

function recommendCard(at) {
  const note = el("p", { class: "quiet" });
  const again = el("button", { type: "button", class: "small" }, "Draw again");
  let by = "mean";
  const [box, load] = later(() => request("recommend", { at, by }), (found) => found.cells.length
    ? [cellTable(found.cells, found.axis, { caption: "Recommendations", head: "Column", values: ORDERS[by][2], link: (cell) => address("columns", cell.at) })]
    : [el("p", { class: "quiet" }, "All values are observed: there is nothing to recommend.")]);
  const choose = (value) => {
    by = value;
    note.textContent = ORDERS[by][1];
    again.hidden = by !== "curious";
    load();
  };
  again.addEventListener("click", () => load());
  const offered = about.orders.map((name) => [name, ORDERS[name][0]]);
  const card = el("section", { class: "card", id: "recommendations" }, el("h2", {}, "Recommendations"),
    offered.length > 1 ? choices("Recommend by", offered, "mean", choose) : null, note, box, again);
  choose("mean");
  return card;
}

function nearestCard(side, at) {
  const [box, load] = later(() => request("nearest", { side, at }), (found) => found.nearest.length
    ? [el("ol", { class: "near" }, ...found.nearest.map((other) => {
      const share = el("span", { class: "share", "aria-hidden": "true" });
      share.style.width = `${100 * Math.max(0, other.similarity)}%`;
      return el("li", {}, el("a", { href: address(side, other.at) }, titleOf(other)),
        el("span", { class: "number" }, other.similarity.toFixed(2)), el("span", { class: "rail" }, el("span", { class: "scale" }, share)));
    }))]
    : [el("p", { class: "quiet" }, `No other ${ONE[side]} has a similar pattern${about.mixed && side === "columns" ? "; categories are not compared" : ""}.`)]);
  load();
  return el("section", { class: "card", id: "nearest" }, el("h2", {}, `Similar ${side}`),
    el("p", { class: "quiet" }, `Cosine similarity of the differences from the average ${ONE[side]}: 1 is the same pattern, 0 is unrelated.`), box);
}

function route() {
  view += 1;
  const [, where, at] = location.hash.split("/");
  const known = where in OTHER && /^\d+$/.test(at ?? "") && Number(at) < about[where];
  document.title = `${about.title} · fillrank`;
  for (const [id, on] of [["to-look", where !== "fill"], ["to-fill", where === "fill"]]) {
    if (on) byId(id).setAttribute("aria-current", "page");
    else byId(id).removeAttribute("aria-current");
  }
  byId("find").hidden = where === "fill";
  if (where === "fill") show(fillView(about));
  else if (known) lineView(where, Number(at));
  else startView();
}

async function start() {
  // The token is now in a cookie: remove it from the address and from the history.
  history.replaceState(null, "", location.pathname + location.hash);
  try {
    about = await request("about");
  } catch (error) {
    show(problem(error));
    return;
  }
  byId("title").textContent = about.title;
  byId("views").hidden = about.mixed; // there is only one
  startSearch(about, (side, at) => { location.hash = address(side, at); });
  startDrops((files) => {
    if (location.hash !== "#/fill") {
      history.pushState(null, "", "#/fill");
      route();
    }
    if (files.length === 1) fillFile(about, files[0]);
    else byId("result").replaceChildren(problem(new Error(`${files.length} files were dropped; drop one at a time.`)));
  });
  window.addEventListener("hashchange", () => { route(); byId("main").focus({ preventScroll: true }); });
  route();
}

start();
