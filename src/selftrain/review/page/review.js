// The page of a review. Texts come from anyone: they are only ever set as textContent.
"use strict";

const ROW = 52; // pixels, as in review.css
const PAGE = 100; // rows fetched together
const MOST_PAGES = 60;
const KEYED = 9; // labels that a digit gives
const SHOWN_CLASSES = 8;
// Characters that cannot be seen, or that turn the direction of a text around.
const HIDDEN = /([\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}])/u;
const MARKS = { accept: "✓", label: "✎", drop: "✕" };
const USES = { easy: "learnt from", hard: "contrast only", left: "not used" };

const $ = (id) => document.getElementById(id);
const list = $("list"), sizer = $("sizer");
const view = { order: "worth", text: "", label: "", role: "all", state: "all" };
let labels = [], gold = 0, total = 0, at = 0, pages = new Map(), asked = new Set();
let generation = 0, nodes = [], detail = null, nearTimer = 0, work = Promise.resolve();

// ── small things ──

function element(tag, name, text) {
  const node = document.createElement(tag);
  if (name) node.className = name;
  if (text !== undefined) node.textContent = text;
  return node;
}

// Text with what cannot be seen spelt out.
function fill(node, text) {
  node.replaceChildren(...text.split(HIDDEN).filter(Boolean).map((part) => {
    if (!HIDDEN.test(part)) return document.createTextNode(part);
    const code = part.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
    return element("span", "code", `U+${code}`);
  }));
  return node;
}

const isolated = (text) => { const node = fill(element("bdi"), text); node.dir = "auto"; return node; };
const spelt = (text) => fill(element("span"), text).textContent;
const number = (count) => count.toLocaleString("en");
const share = (value) => value.toFixed(2);

function chip(label) {
  const node = element("span", `chip c${label % 8}`);
  node.append(isolated(labels[label]));
  return node;
}

async function ask(path, query, body) {
  const address = query ? `${path}?${new URLSearchParams(query)}` : path;
  const sent = body ? { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) } : {};
  let answer;
  try {
    answer = await fetch(address, { credentials: "same-origin", ...sent });
  } catch {
    throw new Error("The review has ended. Start it again: selftrain review");
  }
  const type = answer.headers.get("content-type") || "";
  const facts = type.includes("json") ? await answer.json() : { error: await answer.text() };
  if (!answer.ok) throw new Error([facts.error, facts.hint].filter(Boolean).join(" – "));
  return facts;
}

function trouble(error) {
  $("problem").hidden = !error;
  $("problem").textContent = error ? error.message : "";
}

// One thing after the other: a verdict is saved before the next key acts.
function queue(act) {
  work = work.then(act).then(() => undefined, trouble);
  return work;
}

// ── the list: as many nodes as fit the window, used again and again ──

function visible() {
  const first = Math.max(0, Math.floor(list.scrollTop / ROW) - 3);
  return [first, Math.min(total, first + nodes.length)];
}

function rowAt(place) {
  const page = pages.get(Math.floor(place / PAGE));
  return page ? page[place % PAGE] : undefined;
}

function makeNodes() {
  const wanted = Math.ceil(list.clientHeight / ROW) + 8;
  while (nodes.length < wanted) {
    const node = element("div", "row");
    node.setAttribute("role", "option");
    node.append(element("span", "mark"), element("span", "snippet"), element("span"), element("span", "p"));
    node.addEventListener("click", () => queue(() => select(Number(node.dataset.at))));
    sizer.append(node);
    nodes.push(node);
  }
}

function render() {
  makeNodes();
  const [first, last] = visible();
  const used = new Set();
  for (let place = first; place < last; place++) {
    const node = nodes[place % nodes.length];
    used.add(node);
    draw(node, place);
  }
  for (const node of nodes) if (!used.has(node)) node.hidden = true;
  if (last > first) for (let page = Math.floor(first / PAGE); page <= Math.floor((last - 1) / PAGE); page++) fetchPage(page);
  const open = nodes[at % nodes.length];
  if (open && !open.hidden && Number(open.dataset.at) === at) list.setAttribute("aria-activedescendant", open.id);
  else list.removeAttribute("aria-activedescendant");
}

function draw(node, place) {
  const row = rowAt(place), chosen = place === at;
  const key = `${generation}/${place}/${row ? JSON.stringify(row[6]) : "?"}/${chosen}/${total}`;
  if (node.dataset.key === key && !node.hidden) return;
  node.hidden = false;
  Object.assign(node.dataset, { key, at: place });
  node.id = `row-${place}`;
  node.style.transform = `translateY(${place * ROW}px)`;
  node.setAttribute("aria-selected", String(chosen));
  node.setAttribute("aria-posinset", place + 1);
  node.setAttribute("aria-setsize", total);
  const [mark, snippet, label, p] = node.children;
  if (!row) {
    mark.textContent = p.textContent = "";
    snippet.textContent = "…";
    label.replaceChildren();
    node.className = "row";
    return;
  }
  const [, pseudo, belief, confidence, , text, verdict] = row;
  node.className = `row ${verdict ? verdict[0] : ""}`;
  mark.className = `mark ${verdict ? verdict[0] : ""}`;
  mark.textContent = verdict ? MARKS[verdict[0]] : "";
  if (verdict) mark.setAttribute("aria-label", said(verdict)); else mark.removeAttribute("aria-label");
  mark.setAttribute("role", verdict ? "img" : "presentation");
  snippet.replaceChildren(isolated(text.replace(/\s+/g, " ")));
  label.replaceChildren(chip(verdict && verdict[1] !== null ? verdict[1] : pseudo));
  const value = belief === null ? confidence : belief;
  p.textContent = (belief === null ? "~" : "") + share(value);
  p.className = value < 0.7 ? "p unsure" : "p";
  p.title = belief === null ? "the teacher's confidence, not calibrated" : "calibrated probability";
}

const said = (verdict) => ({ accept: "accepted", label: `labelled ${verdict[1] === null ? "" : spelt(labels[verdict[1]])}`, drop: "dropped" })[verdict[0]];

async function fetchPage(page, fresh = false) {
  if (asked.has(page)) return;
  asked.add(page);
  const mine = generation;
  const query = { ...view, from: page * PAGE, count: PAGE };
  if (fresh) query.new = "1";
  try {
    const facts = await ask("/api/rows", query);
    if (mine !== generation) return;
    pages.set(page, facts.rows);
    total = facts.total;
    if (pages.size > MOST_PAGES) {
      const oldest = pages.keys().next().value;
      pages.delete(oldest);
      asked.delete(oldest);
    }
    render();
    if (!page && mine === 1) performance.mark("first rows");
  } catch (error) {
    asked.delete(page);
    trouble(error);
  }
}

async function relist(keep = 0) {
  generation += 1;
  pages = new Map();
  asked = new Set();
  await fetchPage(0, true);
  sizer.style.height = `${total * ROW}px`;
  $("total").textContent = total === 1 ? "1 row" : `${number(total)} rows`;
  if (!total) {
    render();
    detail = null;
    $("open").hidden = true;
    return;
  }
  await select(Math.min(keep, total - 1));
}

// ── the open row ──

async function select(place) {
  if (!total) return;
  at = Math.max(0, Math.min(total - 1, place));
  const top = at * ROW;
  if (top < list.scrollTop) list.scrollTop = top;
  else if (top + ROW > list.scrollTop + list.clientHeight) list.scrollTop = top + ROW - list.clientHeight;
  render();
  const page = Math.floor(at / PAGE);
  if (!rowAt(at)) {
    asked.delete(page);
    await fetchPage(page);
  }
  const row = rowAt(at);
  if (!row) return;
  const mine = at;
  const facts = await ask("/api/row", { place: row[0] });
  if (mine === at) show(facts);
}

function show(facts) {
  const other = !detail || detail.place !== facts.place;
  detail = facts;
  $("open").hidden = false;
  $("position").textContent = `Row ${number(at + 1)} of ${number(total)}`;
  $("name").replaceChildren(isolated(facts.uid.slice(0, 80)));
  const text = element("p");
  text.append(isolated(facts.text));
  const parts = [text];
  if (facts.pair !== null) {
    const second = element("p", "second");
    second.append(isolated(facts.pair));
    parts.push(second);
  }
  $("full").replaceChildren(...parts);
  const scrolls = $("full").scrollHeight > $("full").clientHeight;
  if (scrolls) { $("full").tabIndex = 0; $("full").setAttribute("role", "region"); $("full").setAttribute("aria-label", "Text"); }
  else { $("full").removeAttribute("tabindex"); $("full").removeAttribute("role"); $("full").removeAttribute("aria-label"); }
  $("cut").hidden = !facts.cut;
  $("cut").textContent = `${number(facts.cut)} more characters are not shown.`;
  showLabels(facts);
  showVerdict(facts.verdict);
  $("why").textContent = facts.why;
  $("now").hidden = facts.answer === facts.label;
  if (!$("now").hidden) $("now").replaceChildren("The final model answers ", chip(facts.answer), " for this text.");
  showVotes(facts);
  if (other) {
    $("full").scrollTop = $("open").scrollTop = 0;
    $("near").replaceChildren(element("p", "meta", gold ? "looking …" : "Give the labelled texts to see those most like this one: --labelled labelled.csv"));
    clearTimeout(nearTimer);
    if (gold) nearTimer = setTimeout(() => findNear(facts.place), 120);
  }
}

// The labels that digits give: all of few, of many the likeliest for this row.
function choices(facts) {
  const all = labels.map((_, label) => label);
  if (labels.length <= KEYED) return all;
  const p = facts.model || facts.folds;
  const weight = (label) => (p ? p[label] : 0) + (label === facts.label ? 2 : 0);
  return all.sort((a, b) => weight(b) - weight(a) || a - b).slice(0, KEYED);
}

function showLabels(facts) {
  const chosen = facts.verdict ? facts.verdict[1] : facts.label;
  const buttons = choices(facts).map((label, place) => {
    const button = element("button", `c${label % 8}`);
    button.append(isolated(labels[label]), element("kbd", "", String(place + 1)));
    button.setAttribute("aria-pressed", String(label === chosen));
    button.addEventListener("click", () => queue(() => decide("label", label)));
    return button;
  });
  if (labels.length > KEYED) {
    const more = element("button", "", "Other label ");
    more.append(element("kbd", "", "l"));
    more.addEventListener("click", openFinder);
    buttons.push(more);
  }
  $("labels").replaceChildren(...buttons);
}

function showVerdict(verdict) {
  const node = $("verdict");
  node.className = `verdict ${verdict ? verdict[0] : "none"}`;
  node.replaceChildren();
  if (!verdict) node.textContent = "Not checked yet.";
  else if (verdict[0] === "accept") node.textContent = "✓ Accepted: the next run learns this label from you.";
  else if (verdict[0] === "drop") node.textContent = "✕ Dropped: the next run does not see this text.";
  else node.append("✎ Labelled ", isolated(labels[verdict[1]]), " by you.");
}

function showVotes(facts) {
  if (!facts.folds) {
    $("votes").replaceChildren(element("p", "meta", `Used as: ${USES[facts.role]}. No votes of the folds: this row is outside of the slice they judged.`));
    return;
  }
  const table = element("table", "votes"), head = element("tr"), body = element("tbody");
  head.append(element("th", "", "class"), element("th", "", "model, calibrated"), element("th", "", "folds, taught by gold alone"));
  const order = labels.map((_, label) => label).sort((a, b) => facts.folds[b] - facts.folds[a]);
  const shown = order.filter((label, place) => place < SHOWN_CLASSES || label === facts.label || label === facts.answer);
  for (const label of shown) {
    const row = element("tr"), name = element("th");
    name.scope = "row";
    name.append(isolated(labels[label]));
    row.append(name, voted(facts.model && facts.model[label], ""), voted(facts.folds[label], "folds"));
    body.append(row);
  }
  const top = element("thead");
  top.append(head);
  table.append(top, body);
  $("votes").replaceChildren(table);
}

function voted(value, kind) {
  const cell = element("td"), inner = element("div", "cell"), meter = element("div", `meter ${kind}`), bar = element("i");
  if (value === null || value === undefined) { cell.textContent = "–"; return cell; }
  bar.style.width = `${Math.round(100 * value)}%`;
  meter.append(bar);
  inner.append(meter, element("span", "", share(value)));
  cell.append(inner);
  return cell;
}

async function findNear(place) {
  let facts;
  try {
    facts = await ask("/api/near", { place });
  } catch (error) {
    facts = { state: "failed", why: error.message };
  }
  if (!detail || detail.place !== place) return;
  if (facts.state === "loading") {
    $("near").replaceChildren(element("p", "meta", "loading the model …"));
    nearTimer = setTimeout(() => findNear(place), 700);
  } else if (facts.state === "ready") {
    $("near").replaceChildren(...facts.near.map(nearOf));
  } else {
    $("near").replaceChildren(element("p", "meta", facts.why || "none"));
  }
}

function nearOf(near) {
  const node = element("div", "near"), text = element("div"), words = element("p");
  words.append(isolated(near.pair === null ? near.text : `${near.text}\n${near.pair}`));
  text.append(words, element("small", "", `similarity ${share(near.similarity)}`));
  const label = labels.indexOf(near.label);
  const named = label < 0 ? element("span", "chip") : chip(label);
  if (label < 0) named.append(isolated(near.label));
  node.append(named, text);
  return node;
}

// ── deciding ──

async function decide(verdict, label) {
  if (verdict !== "undo" && !detail) return;
  const body = verdict === "undo" ? { verdict } : { verdict, place: detail.place };
  if (verdict === "label") body.label = label;
  const facts = await ask("/api/verdict", null, body);
  trouble(null);
  showProgress(facts.progress);
  if (facts.place === null) {
    $("status").textContent = "Nothing to undo.";
    return;
  }
  let there = -1;
  for (const [page, rows] of pages) {
    rows.forEach((row, place) => {
      if (row[0] === facts.place) { row[6] = facts.verdict; there = page * PAGE + place; }
    });
  }
  $("status").textContent = verdict === "undo" ? "Taken back." : `Saved: ${said(facts.verdict)}.`;
  if (verdict === "undo") {
    if (there >= 0) await select(there); else { render(); if (detail && detail.place === facts.place) show(await ask("/api/row", { place: facts.place })); }
  } else if (at + 1 < total) await select(at + 1);
  else await select(at);
}

function showProgress(progress) {
  const done = progress.accept + progress.label + progress.drop;
  $("bar").max = progress.rows;
  $("bar").value = done;
  $("checked").textContent = `${number(done)} of ${number(progress.rows)} checked`;
  $("checked").title = `${progress.accept} accepted, ${progress.label} labelled, ${progress.drop} dropped`;
}

async function nextWorth() {
  const plain = view.order === "worth" && !view.text && !view.label && view.role === "all" && view.state === "all";
  if (!plain) {
    Object.assign(view, { order: "worth", text: "", label: "", role: "all", state: "all" });
    for (const name of Object.keys(view)) $(name).value = view[name];
    await relist();
  }
  const facts = await ask("/api/next", { after: plain ? at + 1 : 0 });
  if (facts.at === null) $("status").textContent = "Every row is checked.";
  else await select(facts.at);
  list.focus({ preventScroll: true });
}

// ── finding a label by a part of its name ──

let found = [], foundAt = 0;

function openFinder() {
  if (!detail) return;
  $("part").value = "";
  showMatches();
  $("finder").showModal();
  $("part").focus();
}

function showMatches() {
  const part = $("part").value.trim().toLowerCase();
  found = labels.map((_, label) => label).filter((label) => labels[label].toLowerCase().includes(part));
  found.sort((a, b) => labels[b].toLowerCase().startsWith(part) - labels[a].toLowerCase().startsWith(part) || a - b);
  found = found.slice(0, 100);
  foundAt = Math.max(0, Math.min(foundAt, found.length - 1));
  $("matches").replaceChildren(...found.map((label, place) => {
    const node = element("div");
    node.id = `match-${place}`;
    node.setAttribute("role", "option");
    node.setAttribute("aria-selected", String(place === foundAt));
    node.append(isolated(labels[label]));
    node.addEventListener("click", () => take(label));
    return node;
  }));
  if (found.length) $("part").setAttribute("aria-activedescendant", `match-${foundAt}`);
  else $("part").removeAttribute("aria-activedescendant");
  const open = $(`match-${foundAt}`);
  if (open) open.scrollIntoView({ block: "nearest" });
}

function take(label) {
  $("finder").close();
  list.focus({ preventScroll: true });
  queue(() => decide("label", label));
}

$("part").addEventListener("input", () => { foundAt = 0; showMatches(); });
$("part").addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    foundAt += event.key === "ArrowDown" ? 1 : -1;
    showMatches();
  } else if (event.key === "Enter") {
    if (found.length) take(found[foundAt]);
  } else return;
  event.preventDefault();
});

// ── keys ──

function pageRows() { return Math.max(1, Math.floor(list.clientHeight / ROW) - 1); }

const KEYS = {
  j: () => select(at + 1), ArrowDown: () => select(at + 1),
  k: () => select(at - 1), ArrowUp: () => select(at - 1),
  PageDown: () => select(at + pageRows()), PageUp: () => select(at - pageRows()),
  Home: () => select(0), End: () => select(total - 1),
  a: () => decide("accept"), x: () => decide("drop"), u: () => decide("undo"), n: nextWorth,
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const inside = event.target;
  if (inside instanceof HTMLInputElement || inside instanceof HTMLSelectElement) {
    if (inside === $("text") && (event.key === "Enter" || event.key === "Escape")) {
      if (event.key === "Escape") $("text").value = "";
      event.preventDefault();
      list.focus({ preventScroll: true });
      filter();
    }
    return;
  }
  if (inside === $("full") && ["ArrowDown", "ArrowUp", "PageDown", "PageUp", "Home", "End"].includes(event.key)) return;
  const digit = /^[1-9]$/.test(event.key) ? Number(event.key) : 0;
  if (KEYS[event.key]) queue(KEYS[event.key]);
  else if (digit) queue(() => detail && digit <= choices(detail).length ? decide("label", choices(detail)[digit - 1]) : undefined);
  else if (event.key === "l") queue(openFinder);
  else if (event.key === "/") $("text").focus();
  else if (event.key === "?") $("help").showModal();
  else return;
  event.preventDefault();
});

// ── filters ──

let typing = 0;

function filter() {
  clearTimeout(typing);
  queue(async () => {
    const before = JSON.stringify(view);
    for (const name of Object.keys(view)) view[name] = $(name).value;
    if (JSON.stringify(view) === before) return;
    list.scrollTop = 0;
    await relist();
  });
}

$("filters").addEventListener("submit", (event) => event.preventDefault());
$("text").addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(filter, 200); });
for (const name of ["order", "label", "role", "state"]) $(name).addEventListener("change", filter);
$("accept").addEventListener("click", () => queue(() => decide("accept")));
$("drop").addEventListener("click", () => queue(() => decide("drop")));
$("undo").addEventListener("click", () => queue(() => decide("undo")));
$("worth").addEventListener("click", () => queue(nextWorth));
$("ask").addEventListener("click", () => $("help").showModal());
list.addEventListener("scroll", () => requestAnimationFrame(render), { passive: true });
new ResizeObserver(() => render()).observe(list);

// ── start ──

queue(async () => {
  const run = await ask("/api/run");
  labels = run.labels;
  gold = run.gold;
  $("run").replaceChildren(isolated(run.name));
  $("file").replaceChildren(isolated(run.file));
  labels.forEach((label, place) => {
    const option = element("option", "", spelt(label));
    option.value = String(place);
    $("label").append(option);
  });
  showProgress(run.progress);
  await relist();
  list.focus({ preventScroll: true });
});
