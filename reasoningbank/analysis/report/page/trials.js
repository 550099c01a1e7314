// Every trial in a list that can be searched and filtered; only the rows in sight are in the page.

/** Trials of learning streams are practice; only the others are compared. */
const partOf = (trial) => (trial.step === null ? "held out" : "stream");

const FILTERS = {
  arm: { label: "Arm", of: (t) => t.arm },
  part: { label: "Part", of: partOf },
  outcome: { label: "Outcome", of: (t) => t.outcome },
  status: { label: "Ended", of: (t) => t.status },
  level: { label: "Level", of: (t) => t.task.level },
  complexity: { label: "Complexity", of: (t) => t.task.complexity },
  form: { label: "Form", of: (t) => t.task.form },
};

const ORDERS = {
  task: { label: "by task", by: null },
  arm: { label: "by arm", by: (a, b) => a.number - b.number },
  f1: { label: "best first", by: (a, b) => b.f1 - a.f1 },
  tokens: { label: "most tokens", by: (a, b) => b.tokens - a.tokens },
  seconds: { label: "slowest", by: (a, b) => b.seconds - a.seconds },
  step: { label: "by step", by: (a, b) => (a.step ?? -1) - (b.step ?? -1) },
};

const list = {
  query: new URLSearchParams(),
  found: [],
  selected: 0,
  rowHeight: 64,
  rows: new Map(),
  printing: false,
};

const taskOrder = (a, b) => a.rank - b.rank;

/** The trials that a query (the part of the address after `#trials?`) asks for, in its order. */
function findTrials(query) {
  const words = (query.get("q") || "").toLowerCase().split(/\s+/).filter(Boolean);
  const asked = Object.keys(FILTERS).filter((name) => query.get(name));
  const task = query.get("task");
  const seed = query.get("seed");
  const strict = query.get("strict");
  const verdict = query.get("verdict");
  const item = query.get("memory");
  const found = store.trials.filter(
    (trial) =>
      asked.every((name) => FILTERS[name].of(trial) === query.get(name)) &&
      (!strict || (trial.outcome === "right") === (strict === "yes")) &&
      (!verdict || trial.verdict === verdict) &&
      (!task || trial.task.id === task) &&
      (!seed || String(trial.seed) === seed) &&
      (!item || trial.items.includes(item)) &&
      words.every((word) => searched(trial).includes(word)),
  );
  const order = ORDERS[query.get("order")]?.by || taskOrder;
  return found.sort((a, b) => order(a, b) || taskOrder(a, b));
}

function option(value, label, chosen) {
  return h("option", { value, selected: value === chosen }, label);
}

/** Make the controls once; values that only one kind of trial has are no choice. */
function makeFilters() {
  const bar = byId("filters");
  for (const [name, { label, of }] of Object.entries(FILTERS)) {
    const values = [...new Set(store.trials.map(of))].filter((value) => value !== "");
    if (values.length < 2) continue;
    if (name !== "arm") values.sort();
    const options = [option("", `any`), ...values.map((value) => option(value, value))];
    bar.append(choice(name, label, options));
  }
  const steps = store.trials.some((t) => t.step !== null);
  const orders = Object.entries(ORDERS).filter(([name]) => name !== "step" || steps);
  bar.append(choice("order", "Order", orders.map(([name, { label }]) => option(name, label))));
  byId("search").addEventListener("input", (event) => {
    setFilter("q", event.target.value);
  });
  // On a phone the filters would leave no room for what they find.
  byId("filters").closest("details").open = innerWidth > 640;
  byId("clear").addEventListener("click", () => {
    // The address follows later, and leaves a field alone that is being typed in.
    byId("search").value = "";
    location.hash = "#trials";
    showTrials(new URLSearchParams());
    byId("search").focus();
  });
}

function choice(name, label, options) {
  const select = h("select", { id: `filter-${name}`, name }, options);
  select.addEventListener("change", () =>
    setFilter(name, name === "order" && select.value === "task" ? "" : select.value),
  );
  return h("label.choice", {}, h("span", {}, label), select);
}

function setFilter(name, value) {
  const query = new URLSearchParams(list.query);
  if (value) query.set(name, value);
  else query.delete(name);
  const said = query.toString();
  // Typing must not fill the history: the address follows without a new entry.
  history.replaceState(null, "", said ? `#trials?${said}` : "#trials");
  showTrials(query, { keepFocus: true });
}

/** Show the list for a query. */
function showTrials(query, { keepFocus = false } = {}) {
  const changed = query.toString() !== list.query.toString() || !list.found.length;
  list.query = query;
  if (changed) {
    list.found = findTrials(query);
    list.selected = 0;
  }
  for (const name of Object.keys(FILTERS)) {
    const select = byId(`filter-${name}`);
    if (select) select.value = query.get(name) || "";
  }
  byId("filter-order").value = query.get("order") || "task";
  const search = byId("search");
  if (document.activeElement !== search) search.value = query.get("q") || "";
  sayFound();
  if (changed && keepFocus) window.scrollTo({ top: 0 });
  drawRows(true);
}

function sayFound() {
  const { found, query } = list;
  const parts = [...new Set(found.map(partOf))];
  const rate = parts
    .map((part) => {
      const counted = found.filter((t) => partOf(t) === part && counts(t));
      const right = counted.filter((t) => t.outcome === "right").length;
      const named = parts.length > 1 ? `${part}: ` : "";
      return counted.length
        ? ` · ${named}${count(right)} right of ${count(counted.length)} counted (${percent(right / counted.length)})`
        : "";
    })
    .join("");
  const of = found.length === store.trials.length ? "" : ` of ${count(store.trials.length)}`;
  const text = `${count(found.length)}${of} ${store.trials.length === 1 ? "trial" : "trials"}${rate}`;
  const extra = ["strict", "verdict", "task", "seed", "memory"].filter((name) => query.get(name));
  replace(
    byId("found"),
    text,
    extra.map((name) => [" · ", h("span.chip", {}, `${name} ${query.get(name)}`)]),
  );
  byId("clear").hidden = !query.size;
  byId("none").hidden = found.length > 0;
  announce(text);
}

function row(trial, at) {
  const { task } = trial;
  const why = trial.error || (trial.outcome === "wrong" ? trial.reason : "");
  const attributes = {
    href: trialHash(trial),
    id: `row-${at}`,
    "aria-label": `${task.id}, ${trial.arm}, seed ${trial.seed}: ${inWords(trial)}. ${task.question}`,
    "aria-current": at === list.selected ? "true" : null,
    onfocus: () => select(at, false),
  };
  return h("a.row", attributes,
    mark(trial),
    h("span.row-task", {},
      h("b", {}, task.id),
      h("span.row-question", {}, task.question),
    ),
    h("span.row-arm", {}, trial.arm, h("span.quiet", {}, ` ·${trial.seed}`)),
    h("span.row-why", { title: why },
      h("span.row-status", {}, trial.status),
      why && h("span.quiet", {}, why),
    ),
    h("span.row-number", {},
      trial.outcome === "error" ? "–" : trial.f1.toFixed(2),
      h("small", {}, "F1"),
    ),
    h("span.row-number", {}, short(trial.tokens), h("small", {}, "tokens")),
    h("span.row-number", {}, duration(trial.seconds)),
  );
}

/** Put the rows in sight into the page, and take the others out. */
function drawRows(anew = false) {
  const box = byId("rows");
  if (box.closest(".view").hidden) return;
  if (anew) {
    box.replaceChildren();
    list.rows.clear();
    list.rowHeight = parseFloat(getComputedStyle(box).getPropertyValue("--row-height")) || 64;
    box.style.height = `${list.found.length * list.rowHeight}px`;
  }
  const top = -box.getBoundingClientRect().top;
  let first = Math.max(0, Math.floor(top / list.rowHeight) - 8);
  let last = Math.min(list.found.length, Math.ceil((top + innerHeight) / list.rowHeight) + 8);
  if (list.printing) [first, last] = [0, Math.min(list.found.length, 2000)];
  for (const [at, node] of list.rows) {
    if ((at < first || at >= last) && node !== document.activeElement) {
      node.remove();
      list.rows.delete(at);
    }
  }
  for (let at = first; at < last; at += 1) {
    if (list.rows.has(at)) continue;
    const node = row(list.found[at], at);
    node.style.top = `${at * list.rowHeight}px`;
    list.rows.set(at, node);
    // Kept in order, so that the tab key and a screen reader meet them as they are seen.
    box.insertBefore(node, list.rows.get(at + 1) || null);
  }
}

/** Make one row the current one; j and k move it. */
function select(at, focus = true) {
  const bounded = Math.max(0, Math.min(list.found.length - 1, at));
  list.rows.get(list.selected)?.removeAttribute("aria-current");
  list.selected = bounded;
  if (focus) {
    const box = byId("rows").getBoundingClientRect();
    const top = box.top + bounded * list.rowHeight;
    const edge = byId("filters").closest(".bar").getBoundingClientRect().bottom;
    if (top < edge) window.scrollBy({ top: top - edge - 8 });
    else if (top + list.rowHeight > innerHeight)
      window.scrollBy({ top: top + list.rowHeight - innerHeight + 8 });
    drawRows();
    list.rows.get(bounded)?.focus({ preventScroll: true });
  }
  list.rows.get(bounded)?.setAttribute("aria-current", "true");
}

function startTrials() {
  makeFilters();
  list.found = findTrials(list.query);
  let waiting = false;
  const later = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      drawRows();
    });
  };
  window.addEventListener("scroll", later, { passive: true });
  window.addEventListener("resize", () => drawRows(true));
  window.addEventListener("beforeprint", () => {
    list.printing = true;
    drawRows(true);
  });
  window.addEventListener("afterprint", () => {
    list.printing = false;
    drawRows(true);
  });
}
