// Every task by every arm, one sign a trial; each leads to the trial.

const MATRIX_PAGE = 150;

const matrix = { rows: [], trials: [], shown: 0 };

const counts = (trial) => trial.outcome === "right" || trial.outcome === "wrong";

function rateOf(trials) {
  const counted = trials.filter(counts);
  return counted.length
    ? counted.filter((t) => t.outcome === "right").length / counted.length
    : null;
}

const MATRIX_ORDERS = {
  task: () => 0,
  hardest: (a, b) => (a.rate ?? 2) - (b.rate ?? 2),
  easiest: (a, b) => (b.rate ?? -1) - (a.rate ?? -1),
  differs: (a, b) => b.spread - a.spread,
};

function startMatrix() {
  const parts = [...new Set(store.trials.map(partOf))].sort();
  const part = byId("matrix-part");
  fill(part, parts.map((name) => option(name, name)));
  part.closest("label").hidden = parts.length < 2;
  part.addEventListener("change", () => {
    readMatrix(part.value);
    drawMatrix();
  });
  readMatrix(parts[0]);
  const order = byId("matrix-order");
  order.addEventListener("change", () => drawMatrix(order.value));
  byId("matrix-more").addEventListener("click", moreMatrix);
  window.addEventListener("beforeprint", () => {
    if (!byId("view-matrix").hidden) while (matrix.shown < matrix.rows.length) moreMatrix();
  });
}

/** Take the trials of one part: what is practice and what is compared stand apart. */
function readMatrix(part) {
  matrix.trials = store.trials.filter((trial) => partOf(trial) === part);
  const rows = new Map();
  for (const trial of matrix.trials) {
    if (!rows.has(trial.task)) rows.set(trial.task, { task: trial.task, arms: new Map(), all: [] });
    const row = rows.get(trial.task);
    if (!row.arms.has(trial.arm)) row.arms.set(trial.arm, []);
    row.arms.get(trial.arm).push(trial);
    row.all.push(trial);
  }
  for (const row of rows.values()) {
    const rates = [...row.arms.values()].map(rateOf).filter((rate) => rate !== null);
    row.rate = rateOf(row.all);
    row.spread = rates.length ? Math.max(...rates) - Math.min(...rates) : 0;
    for (const trials of row.arms.values()) trials.sort((a, b) => a.seed - b.seed);
  }
  matrix.rows = [...rows.values()];
}

const armsShown = () => store.arms.filter((arm) => matrix.trials.some((t) => t.arm === arm));

function drawMatrix(order = byId("matrix-order").value) {
  const byTask = (a, b) => a.task.rank - b.task.rank;
  matrix.rows.sort((a, b) => MATRIX_ORDERS[order](a, b) || byTask(a, b));
  matrix.arms = armsShown();
  const rates = matrix.arms.map((arm) => {
    const counted = matrix.trials.filter((t) => t.arm === arm && counts(t));
    const right = counted.filter((t) => t.outcome === "right").length;
    const both = matrix.trials.length < store.trials.length;
    const query = new URLSearchParams({ arm, ...(both && { part: partOf(matrix.trials[0]) }) });
    return h("th", { scope: "col" },
      h("a", { href: `#trials?${query}` }, arm),
      h("small", {}, `${right}/${counted.length}`),
    );
  });
  replace(byId("matrix-head"), h("tr", {}, h("th", { scope: "col" }, "Task"), rates));
  byId("matrix-body").replaceChildren();
  matrix.shown = 0;
  moreMatrix();
}

function moreMatrix() {
  const next = matrix.rows.slice(matrix.shown, matrix.shown + MATRIX_PAGE);
  fill(byId("matrix-body"), next.map(matrixRow));
  matrix.shown += next.length;
  const left = matrix.rows.length - matrix.shown;
  byId("matrix-more").hidden = left <= 0;
  byId("matrix-more").textContent =
    `Show ${many(Math.min(left, MATRIX_PAGE), "more task")} of ${count(left)}`;
}

function matrixRow({ task, arms }) {
  const query = new URLSearchParams({ task: task.id });
  return h("tr", {},
    h("th", { scope: "row", title: task.question },
      h("a", { href: `#trials?${query}` }, task.id),
      h("span.quiet.matrix-question", {}, task.question),
    ),
    matrix.arms.map((arm) => h("td", {}, cell(arms.get(arm)))),
  );
}

/** Move among the signs with the arrows or h, j, k, l. */
function moveInMatrix(dx, dy) {
  const rows = [...byId("matrix-body").rows].map((tr) => [...tr.querySelectorAll("td a")]);
  const at = rows.findIndex((links) => links.includes(document.activeElement));
  if (at < 0) {
    rows.find((links) => links.length)?.[0].focus();
    return;
  }
  const column = rows[at].indexOf(document.activeElement);
  let y = at + dy;
  while (dy && rows[y] && !rows[y].length) y += dy;
  const links = rows[y];
  if (links) links[Math.max(0, Math.min(links.length - 1, column + dx))].focus();
}
