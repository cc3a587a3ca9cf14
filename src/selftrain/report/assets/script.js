"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  if (!data) return;
  const [X, Y, LABEL, P, ROLE, ROUND, CERTAINTY, FOLDS, FOLDSP, TEXT, PAIR] = [...Array(11).keys()];
  const { labels, roles, rows } = data;
  const words = {
    gold: "your label", easy: "learnt from", hard: "contrast", left: "left", unused: "not judged",
  };
  const find = (id) => document.getElementById(id);
  const add = (parent, tag, text, kind) => {
    const child = document.createElement(tag);
    if (text !== undefined) child.textContent = text;
    if (kind) child.className = kind;
    parent.append(child);
    return child;
  };

  // Colours: the ten most frequent labels have one each, the others are grey.
  const light = ["#0a6a72", "#c07a12", "#7a4fa3", "#2f6db5", "#b03a5b", "#5c7d1f", "#8a5a3b", "#1f8f5f", "#a23fa0", "#66707a"];
  const dark = ["#6fc7cc", "#e0a448", "#b99be0", "#7fb2ec", "#ec8ba8", "#a8cc63", "#cf9d7c", "#6fd3a4", "#e19be0", "#aab4bc"];
  const night = matchMedia("(prefers-color-scheme: dark)");
  const counts = new Array(labels.length).fill(0);
  for (const row of rows) counts[row[LABEL]] += 1;
  const order = counts.map((count, at) => [count, at]).sort((a, b) => b[0] - a[0] || a[1] - b[1]);
  const rank = new Map(order.slice(0, 10).map(([, at], place) => [at, place]));
  const colour = (label) => {
    const place = rank.get(label);
    const all = night.matches ? dark : light;
    return place === undefined ? (night.matches ? "#5d666c" : "#b9b7b0") : all[place];
  };

  const describe = (parent, row) => {
    parent.replaceChildren();
    const title = add(parent, "b");
    add(title, "bdi", labels[row[LABEL]]);
    add(parent, "span", `, ${row[P].toFixed(2)}, ${words[roles[row[ROLE]]]}` + (row[ROUND] === null ? "" : ` in round ${row[ROUND]}`));
    if (row[TEXT] !== null) {
      add(parent, "br");
      add(parent, "bdi", row[TEXT], "text");
      if (row[PAIR] !== null) { add(parent, "b", " · "); add(parent, "bdi", row[PAIR], "text"); }
    }
  };

  // ── the map ──
  const canvas = find("canvas");
  if (canvas) {
    const placed = rows.filter((row) => row[X] !== null);
    const hidden = new Set();
    const CELL = 16;
    let grid = new Map();
    let chosen = null;
    const draw = () => {
      const wide = canvas.clientWidth || 720;
      const high = Math.round(Math.min(560, Math.max(300, wide * 0.62)));
      const ratio = window.devicePixelRatio || 1;
      canvas.width = wide * ratio;
      canvas.height = high * ratio;
      const pen = canvas.getContext("2d");
      pen.scale(ratio, ratio);
      grid = new Map();
      const edge = 12;
      for (const row of placed) {
        if (hidden.has(row[LABEL])) continue;
        const x = edge + row[X] * (wide - 2 * edge);
        const y = edge + row[Y] * (high - 2 * edge);
        const gold = roles[row[ROLE]] === "gold";
        pen.beginPath();
        pen.arc(x, y, gold ? 5.5 : 3.2, 0, 7);
        pen.globalAlpha = gold ? 1 : roles[row[ROLE]] === "easy" ? 0.85 : 0.45;
        if (gold) { pen.lineWidth = 2.2; pen.strokeStyle = colour(row[LABEL]); pen.stroke(); }
        else { pen.fillStyle = colour(row[LABEL]); pen.fill(); }
        const key = `${Math.floor(x / CELL)},${Math.floor(y / CELL)}`;
        if (!grid.has(key)) grid.set(key, []);
        grid.get(key).push([x, y, row]);
        if (row === chosen) {
          pen.globalAlpha = 1; pen.beginPath(); pen.arc(x, y, 9, 0, 7); pen.lineWidth = 2;
          pen.strokeStyle = getComputedStyle(document.body).color; pen.stroke();
        }
      }
      pen.globalAlpha = 1;
    };
    const nearest = (x, y) => {
      const [column, line] = [Math.floor(x / CELL), Math.floor(y / CELL)];
      let best = null;
      let least = CELL * CELL;
      for (let dx = -1; dx <= 1; dx += 1) for (let dy = -1; dy <= 1; dy += 1) {
        for (const [px, py, row] of grid.get(`${column + dx},${line + dy}`) || []) {
          const far = (px - x) ** 2 + (py - y) ** 2;
          if (far < least) { least = far; best = row; }
        }
      }
      return best;
    };
    canvas.addEventListener("pointermove", (event) => {
      const row = nearest(event.offsetX, event.offsetY);
      if (row && row !== chosen) { chosen = row; describe(find("about"), row); draw(); }
    });
    canvas.addEventListener("pointerdown", (event) => {
      const row = nearest(event.offsetX, event.offsetY);
      if (row) { chosen = row; describe(find("about"), row); draw(); }
    });
    const legend = find("legend");
    for (const [count, at] of order.slice(0, 10)) {
      if (!count) continue;
      const item = add(legend, "label", undefined, "toggle");
      const box = add(item, "input");
      box.type = "checkbox";
      box.checked = true;
      box.addEventListener("change", () => { box.checked ? hidden.delete(at) : hidden.add(at); draw(); });
      const mark = add(item, "span", undefined, "key");
      mark.dataset.label = at;
      add(item, "bdi", labels[at]);
      add(item, "span", ` ${count}`);
    }
    const more = order.slice(10).filter(([count]) => count).length;
    if (more) add(legend, "span", `and ${more} more classes in grey`);
    const paint = () => {
      for (const mark of legend.querySelectorAll(".key")) mark.style.background = colour(Number(mark.dataset.label));
      draw();
    };
    paint();
    addEventListener("resize", draw);
    night.addEventListener("change", paint);
  }

  // ── the table ──
  const body = find("rows");
  if (!body) return;
  const STEP = 50;
  let shown = STEP;
  const option = (select, value, text) => { const each = add(select, "option", text); each.value = value; };
  for (const [count, at] of order) if (count) option(find("by-label"), at, `${labels[at]} (${count})`);
  roles.forEach((role, at) => { if (rows.some((row) => row[ROLE] === at)) option(find("by-role"), at, words[role]); });
  const rounds = [...new Set(rows.map((row) => row[ROUND]).filter((each) => each !== null))].sort((a, b) => a - b);
  for (const each of rounds) option(find("by-round"), each, String(each));
  const doubt = (row) => row[FOLDS] === null || row[FOLDS] === row[LABEL] ? -1 : row[FOLDSP];
  const orders = { low: (a, b) => a[P] - b[P], high: (a, b) => b[P] - a[P], doubt: (a, b) => doubt(b) - doubt(a) };
  const number = (value) => value === null ? "–" : value.toFixed(2);
  const fill = () => {
    const [label, role, round] = ["by-label", "by-role", "by-round"].map((id) => find(id).value);
    const wanted = find("find").value.toLowerCase();
    const left = rows.filter((row) =>
      (label === "" || row[LABEL] === Number(label)) && (role === "" || row[ROLE] === Number(role)) &&
      (round === "" || row[ROUND] === Number(round)) &&
      (wanted === "" || `${row[TEXT] || ""} ${row[PAIR] || ""}`.toLowerCase().includes(wanted)));
    left.sort(orders[find("order").value]);
    body.replaceChildren();
    for (const row of left.slice(0, shown)) {
      const line = add(body, "tr");
      const cell = add(line, "td");
      add(cell, "bdi", row[TEXT] === null ? "–" : row[TEXT]);
      if (row[PAIR] !== null) { add(cell, "b", " · "); add(cell, "bdi", row[PAIR]); }
      add(add(line, "td"), "bdi", labels[row[LABEL]]);
      add(line, "td", number(row[P]), "n");
      add(line, "td", words[roles[row[ROLE]]]);
      add(line, "td", row[ROUND] === null ? "–" : String(row[ROUND]), "n");
      add(line, "td", number(row[CERTAINTY]), "n");
      const votes = add(line, "td", undefined, doubt(row) >= 0 ? "bad" : "");
      if (row[FOLDS] === null) votes.textContent = "–";
      else { add(votes, "bdi", labels[row[FOLDS]]); add(votes, "span", ` ${number(row[FOLDSP])}`); }
    }
    find("count").textContent = `${Math.min(shown, left.length)} of ${left.length} rows shown`;
    find("more").hidden = left.length <= shown;
  };
  const restart = () => { shown = STEP; fill(); };
  for (const id of ["by-label", "by-role", "by-round", "order"]) find(id).addEventListener("change", restart);
  find("find").addEventListener("input", restart);
  find("more").addEventListener("click", () => { shown += STEP; fill(); });
  fill();
})();
