// Addresses, keys and the light: what holds the views together.

const VIEWS = ["summary", "figures", "matrix", "trials", "trial", "memory"];
const scrolled = new Map();
let shownHash = null;

function addressed() {
  const hash = location.hash.slice(1);
  const [path, query = ""] = hash.split(/\?(.*)/s);
  const parts = path.split("/").map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  return { view: parts[0] || "summary", parts, query: new URLSearchParams(query) };
}

async function route() {
  const { view, parts, query } = addressed();
  if (view === "main") {
    byId("main").focus();
    return;
  }
  const isView = VIEWS.includes(view) && byId(`view-${view}`);
  // Any other address is a part of a view, as in the contents lists.
  const part = isView ? null : byId(parts.join("/"));
  const name = isView ? view : part?.closest(".view")?.id.slice(5) || "summary";
  if (shownHash !== null) scrolled.set(shownHash, scrollY);
  const arrived = shownHash !== null;
  shownHash = location.hash;
  for (const other of document.querySelectorAll(".view"))
    other.hidden = other.id !== `view-${name}`;
  for (const link of document.querySelectorAll(".tabs a")) {
    const current = link.hash === `#${name}` || (name === "trial" && link.hash === "#trials");
    if (current) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (name === "trials") showTrials(query);
  if (name === "matrix" && !matrix.shown) drawMatrix();
  if (name === "memory") await showMemory(parts.slice(1).join("/"));
  if (name === "trial") {
    window.scrollTo({ top: 0 });
    await showTrial(parts[1] ?? "", parts.slice(2, -1).join("/"), parts.at(-1) ?? "");
  }
  const title = byId(`view-${name}`).querySelector("h1");
  document.title =
    title && name !== "summary"
      ? `${title.textContent} · ${document.body.dataset.title}`
      : document.body.dataset.title;
  if (part) {
    part.scrollIntoView();
    return;
  }
  if (name === "memory" && parts.length > 1) return;
  window.scrollTo({ top: name === "trial" ? 0 : (scrolled.get(shownHash) ?? 0) });
  if (name === "trials") drawRows();
  // A reader who moves by keyboard or ear lands where the new view begins.
  if (arrived)
    (name === "trials" ? list.rows.get(list.selected) || title : title)?.focus({
      preventScroll: true,
    });
}

function stepTrial(by) {
  const { parts } = addressed();
  const trial = store.byKey.get(keyOf(parts[1], parts.slice(2, -1).join("/"), parts.at(-1)));
  if (!trial) return;
  const { before, after } = neighbours(trial);
  const other = by > 0 ? after : before;
  if (other) location.hash = trialHash(other);
}

function backToTrials() {
  const { parts } = addressed();
  const trial = store.byKey.get(keyOf(parts[1], parts.slice(2, -1).join("/"), parts.at(-1)));
  const at = list.found.indexOf(trial);
  if (at >= 0) list.selected = at;
  const query = list.query.toString();
  location.hash = query ? `#trials?${query}` : "#trials";
}

/** Keys by view; `any` holds everywhere. */
const KEYS = {
  any: {
    "/": () => {
      if (addressed().view === "memory") byId("memory-search").focus();
      else {
        if (addressed().view !== "trials")
          location.hash = list.query.size ? `#trials?${list.query}` : "#trials";
        setTimeout(() => byId("search").focus());
      }
    },
    "?": () => byId("help").showModal(),
    s: () => (location.hash = "#summary"),
    f: () => (location.hash = "#figures"),
    m: () => (location.hash = "#matrix"),
    t: () => (location.hash = "#trials"),
    b: () => byId("view-memory") && (location.hash = "#memory"),
    d: turnLight,
  },
  trials: {
    j: () =>
      select(
        list.rows.has(list.selected) && document.activeElement?.classList.contains("row")
          ? list.selected + 1
          : list.selected,
      ),
    k: () => select(list.selected - 1),
    Home: () => select(0),
    End: () => select(list.found.length - 1),
  },
  trial: { j: () => stepTrial(1), k: () => stepTrial(-1), Escape: backToTrials },
  matrix: {
    j: () => moveInMatrix(0, 1),
    k: () => moveInMatrix(0, -1),
    l: () => moveInMatrix(1, 0),
    h: () => moveInMatrix(-1, 0),
    ArrowDown: () => moveInMatrix(0, 1),
    ArrowUp: () => moveInMatrix(0, -1),
    ArrowRight: () => moveInMatrix(1, 0),
    ArrowLeft: () => moveInMatrix(-1, 0),
  },
};

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
  const typing = event.target.closest("input, select, textarea");
  if (typing) {
    if (event.key === "Escape") typing.blur();
    if (event.key === "Enter" && typing.id === "search" && list.found.length) select(0);
    return;
  }
  const { view } = addressed();
  const arrows = event.key.startsWith("Arrow");
  // Without a sign in focus, the arrows scroll, as everywhere.
  if (arrows && !event.target.closest("#matrix-body")) return;
  const act = KEYS[view]?.[event.key] || KEYS.any[event.key];
  if (!act) return;
  event.preventDefault();
  act();
}

async function start() {
  byId("light").addEventListener("click", turnLight);
  byId("keys").addEventListener("click", () => byId("help").showModal());
  byId("help-close").addEventListener("click", () => byId("help").close());
  byId("help").addEventListener("click", (event) => {
    if (event.target === byId("help")) byId("help").close();
  });
  document.addEventListener("keydown", onKey);
  try {
    await openStore();
  } catch (error) {
    const note = h("p.note.error", { role: "alert" },
      `The trials in this page cannot be read: ${error.message}`,
    );
    byId("main").prepend(note);
    return;
  }
  startTrials();
  startMatrix();
  byId("memory-more")?.addEventListener("click", moreMemory);
  window.addEventListener("hashchange", route);
  await route();
  document.documentElement.classList.add("ready");
}

start();
