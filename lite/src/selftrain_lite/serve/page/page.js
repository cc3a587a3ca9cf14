"use strict";
// Texts and labels reach the page by textContent alone.
const at = (id) => document.getElementById(id);
const MOST = 12; // labels that are shown
let isPair = false;

function headers(more) {
  const token = at("token").value.trim();
  return token ? { ...more, Authorization: `Bearer ${token}` } : more;
}

async function call(address, options) {
  let response;
  try {
    response = await fetch(address, { credentials: "omit", redirect: "error", ...options });
  } catch {
    throw new Error("The server does not answer.");
  }
  const answer = await response.json().catch(() => null);
  if (response.status === 401) at("door").hidden = false;
  if (!response.ok) throw new Error(sentence(answer?.error ?? `status ${response.status}`));
  return answer;
}

const sentence = (words) => words[0].toUpperCase() + words.slice(1) + ".";
const percent = (share) => `${(100 * share).toFixed(1)} %`;

function problem(words) {
  at("problem").textContent = words;
  at("problem").hidden = !words;
}

function show(answer, milliseconds) {
  const abstains = answer[0].label === "" && answer.length > 1;
  const scores = abstains ? answer.slice(1) : answer;
  at("verdict").textContent = abstains ? "Too uncertain for a label" : "Label";
  at("label").textContent = abstains ? "no label" : scores[0].label;
  at("note").textContent = abstains ? `The best one is below the limit of this server.` : "";
  at("bars").replaceChildren(...scores.slice(0, MOST).map(bar));
  at("time").textContent = `${milliseconds.toFixed(0)} ms`;
  at("answer").hidden = false;
}

function bar({ label, score }) {
  const [row, name, number, track, fill] = ["li", "bdi", "span", "div", "div"].map((kind) =>
    document.createElement(kind),
  );
  name.textContent = label;
  number.textContent = percent(score);
  number.className = "score";
  track.className = "track";
  fill.style.width = `${100 * score}%`;
  track.append(fill);
  row.append(name, number, track);
  return row;
}

async function ask(event) {
  event?.preventDefault();
  problem("");
  at("ask").disabled = true;
  const texts = isPair ? [at("text").value, at("pair").value] : at("text").value;
  const started = performance.now();
  try {
    const body = JSON.stringify({ inputs: texts });
    const options = { method: "POST", headers: headers({ "Content-Type": "application/json" }), body };
    show(await call("/predict", options), performance.now() - started);
    if (!at("facts").dataset.known) await describe();
  } catch (error) {
    at("answer").hidden = true;
    problem(error.message);
  } finally {
    at("ask").disabled = false;
  }
}

async function describe() {
  const info = await call("/info", { headers: headers({}) });
  const known = info.selftrain;
  isPair = known.pair;
  at("second").hidden = !isPair;
  at("text-label").textContent = isPair ? "First text" : "Text";
  at("name").textContent = info.model_id;
  document.title = `${info.model_id} · selftrain`;
  const expected = known.expected?.accuracy;
  at("facts").textContent = [
    `${known.labels.length} labels`,
    expected ? `expected accuracy ${percent(expected)}` : "",
    info.abstain ? `no label below ${percent(info.abstain)}` : "",
  ].filter(Boolean).join(" · ");
  at("facts").dataset.known = "yes";
  if (at("token").value) at("door").hidden = true;
}

at("form").addEventListener("submit", ask);
at("form").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) ask(event);
});
at("token").addEventListener("change", () => describe().then(() => problem(""), (error) => problem(error.message)));
describe().catch((error) => at("door").hidden ? problem(error.message) : problem(""));
