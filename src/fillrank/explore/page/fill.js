// Fill in the missing values of a file: chosen with a button or dropped anywhere on the page.

import { announce, byId, cellTable, counted, el, nameOf, problem, request } from "./parts.js";

const MOST_BYTES = 50 * 2 ** 20;

export function fillView(about) {
  const input = el("input", { type: "file", id: "file", class: "unseen", accept: ".csv,.tsv,.txt,.dat,.data,text/csv" });
  input.addEventListener("change", () => {
    if (input.files.length) fillFile(about, input.files[0]);
    input.value = "";
  });
  return el("section", { class: "card fill" },
    el("h1", {}, "Fill in the missing values of a file"),
    el("p", {}, "The model fills the empty cells of a table whose columns it knows. Each line is treated as a new row and filled from "
      + "its own values; given values are not changed. The file does not leave this machine."),
    el("label", { class: "chooser", for: "file" }, input,
      el("span", { class: "button" }, "Choose a CSV file"), el("span", { class: "quiet" }, "or drop it anywhere on this page")),
    el("p", { class: "quiet" }, `A wide table has some of the model's ${counted(about.columns, "column")} as its header; a long one `
      + "has a row label, a column label and a value on each line, and is filled in all columns. Up to 50 MB."),
    el("div", { id: "result" }));
}

export async function fillFile(about, file) {
  const result = byId("result");
  result.replaceChildren(el("p", { class: "working" }, "Filling ", nameOf(file.name), " …"));
  announce("Filling the file");
  try {
    if (file.size > MOST_BYTES) throw new Error(`${file.name} is larger than 50 MB, the limit of this page. Split it; or use transform in Python.`);
    if (file.size === 0) throw new Error(`${file.name} is empty.`);
    const headers = { "Content-Type": "application/octet-stream" };
    const filled = await request("fill", { name: file.name }, { method: "POST", body: file, headers });
    result.replaceChildren(...resultParts(about, filled));
    announce(`${counted(filled.filled, "missing value")} filled in`);
  } catch (error) {
    result.replaceChildren(problem(error));
  }
}

function resultParts(about, filled) {
  const links = filled.files.map((name) => {
    const address = `api/filled?${new URLSearchParams({ of: filled.of, file: name })}`;
    return el("a", { class: "button", href: address, download: name }, "Download ", nameOf(name));
  });
  const level = Math.round(100 * about.level);
  const notes = filled.intervals
    ? `A new observation is within its interval with probability ${level}%.`
    : about.intervals ? "There are too many missing values for intervals here; fold_in in Python has them."
      : `${about.method} has no intervals.`;
  const some = filled.cells.length < filled.filled ? `The first ${filled.cells.length} of them. ` : "";
  return [
    el("h2", {}, `${counted(filled.filled, "missing value")} filled in`),
    el("p", {}, nameOf(filled.name), `: ${counted(filled.rows, "row")}, ${counted(filled.columns, "column")}, ${counted(filled.given, "value")} given.`
      + (filled.long ? " The file to download has a line for each cell that was not given." : "")),
    el("p", { class: "downloads" }, ...links),
    el("p", { class: "quiet" }, some + notes),
    cellTable(filled.cells, filled.axis, { caption: "Some of the filled cells", head: "Cell" }),
  ];
}

// Files may be dropped anywhere; the browser would otherwise leave the page to show them.
export function startDrops(take) {
  const cover = byId("drop");
  let depth = 0;
  const hasFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  const rest = () => { depth = 0; cover.hidden = true; };
  window.addEventListener("dragenter", (event) => { if (hasFiles(event)) { depth += 1; cover.hidden = false; } });
  window.addEventListener("dragleave", () => { depth -= 1; if (depth <= 0) rest(); });
  window.addEventListener("dragover", (event) => { if (hasFiles(event)) event.preventDefault(); });
  window.addEventListener("drop", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    rest();
    take([...event.dataTransfer.files]);
  });
}
