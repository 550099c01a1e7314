// The memory bank: what was learned, where from, and whom it was shown to.

const bank = { items: null, byId: new Map() };

/** Where an item comes from: `arm/task/seed`, as a link where this run has that trial. */
function trialNamed(name) {
  const match = /^(?:trials\/)?([^/]+)\/(.+?)[/.](\d+)(?:\.json)?$/.exec(String(name || ""));
  return match ? store.byKey.get(keyOf(match[1], match[2], match[3])) : undefined;
}

function originOf(source) {
  const trial = trialNamed(source.trial);
  const said = [
    source.task && `task ${source.task}`,
    source.judge && `judged by ${source.judge}`,
    source.model && `by ${source.model}`,
    source.time,
  ];
  return [
    trial
      ? h("a", { href: trialHash(trial) }, "trial ", source.trial)
      : source.trial
        ? `trial ${source.trial}`
        : "no trial",
    said.filter(Boolean).map((text) => ` · ${text}`),
  ];
}

const bankLink = (id, label) => h("a", { href: `#memory/${encodeURIComponent(id ?? "")}` }, label);

function retrievedItem(item) {
  const score = typeof item.score === "number" ? item.score.toFixed(3) : "";
  return h("article.item", {},
    h("p", {},
      sourceChip(item.src),
      bankLink(item.id, item.title || item.id || "item"),
      score && h("span.quiet", {}, ` score ${score}`),
    ),
    item.text ? richText(String(item.text)) : null,
    h("p.quiet", {}, "from ", originOf(item)),
  );
}

/** Items that memory found and did not show: removed by the leakage filter, or for lack of room. */
function heldBack(label, items) {
  if (!items || !items.length) return null;
  return folded(`${label}: ${many(items.length, "item")}`, () =>
    h("ul.plain", {},
      items.map((item) => h("li", {}, bankLink(item.id, item.id), ` ${item.reason ?? ""}`)),
    ),
  );
}

const sourceChip = (src) =>
  src ? h(`span.chip.src-${/^\w+$/.test(src) ? src : "other"}`, {}, src) : null;

async function showMemory(wanted) {
  if (!bank.items) {
    bank.items = await decode("memory");
    for (const item of bank.items) bank.byId.set(item.id, item);
    const sources = [...new Set(bank.items.map((item) => item.src).filter(Boolean))].sort();
    const places = new Set(bank.items.flatMap((item) => item.places.map((p) => p.place)));
    const { compare } = new Intl.Collator("en", { numeric: true });
    choices("memory-source", sources);
    choices("memory-status", ["active", "superseded", "retired"]);
    choices("memory-place", [...places].sort(compare));
    byId("memory-search").addEventListener("input", drawMemory);
    for (const id of MEMORY_CHOICES) byId(id).addEventListener("change", drawMemory);
  }
  if (wanted) for (const id of ["memory-search", ...MEMORY_CHOICES]) byId(id).value = "";
  drawMemory();
  if (!wanted) return;
  const at = bank.found.findIndex((item) => item.id === wanted);
  while (at >= bank.shown && bank.shown < bank.found.length) moreMemory();
  const node = byId(`item-${wanted}`);
  if (node) {
    node.scrollIntoView({ block: "center" });
    node.focus({ preventScroll: true });
    node.classList.add("flash");
  } else announce("This bank has no such item.");
}

const MEMORY_CHOICES = ["memory-source", "memory-status", "memory-place"];

function choices(id, values) {
  fill(byId(id), values.map((value) => option(value, value)));
}

function drawMemory() {
  const words = byId("memory-search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const [src, status, place] = MEMORY_CHOICES.map((id) => byId(id).value);
  bank.found = bank.items.filter((item) => {
    const text = [
      item.id,
      item.title,
      item.description,
      item.content,
      item.pattern,
      ...(item.tags || []),
    ]
      .join("\n")
      .toLowerCase();
    const there = item.places.some(
      (p) => (!place || p.place === place) && (!status || p.status === status),
    );
    return (!src || item.src === src) && there && words.every((word) => text.includes(word));
  });
  const text = `${count(bank.found.length)} of ${many(bank.items.length, "item")}`;
  byId("memory-found").textContent = text;
  byId("memory-list").replaceChildren();
  bank.shown = 0;
  moreMemory();
}

function moreMemory() {
  const next = bank.found.slice(bank.shown, bank.shown + 60);
  fill(byId("memory-list"), next.map(bankItem));
  bank.shown += next.length;
  byId("memory-more").hidden = bank.shown >= bank.found.length;
}

/** What became of an item in one stream, or in another bank. */
function placeOf(item, place) {
  const counters = Object.entries(place.counters)
    .filter(([, n]) => n)
    .map(([name, n]) => `${name} ${n}`);
  const others = place.evidence.length;
  return h("li", {},
    h("span.quiet", {}, `${place.place}${place.stream ? `, step ${place.first}` : ""}: `),
    h(`span.chip.status-${place.status}`, {}, place.status),
    place.superseded_by
      ? [" by ", bankLink(place.superseded_by, titleOf(place.superseded_by))]
      : "",
    counters.length ? ` ${counters.join(", ")}` : "",
    others
      ? folded(`and ${many(others, "more experience")}`, () =>
          h("ul", {},
            place.evidence.map((source) => h("li", {}, originOf(source))),
          ),
        )
      : null,
  );
}

const titleOf = (id) => bank.byId.get(id)?.title || id;

function bankItem(item) {
  const shown = store.trials.filter((t) => t.items.includes(item.id));
  const right = shown.filter((t) => t.outcome === "right").length;
  const { author } = item.provenance;
  return h("article.item", { id: `item-${item.id}`, tabindex: "-1" },
    h("p", {},
      sourceChip(item.src),
      h("b", {}, item.title || item.id),
      (item.tags || []).map((tag) => [" ", h("span.chip", {}, tag)]),
    ),
    item.description ? h("p.prose", {}, item.description) : null,
    item.question ? h("p.quiet", {}, `asked: ${item.question}`) : null,
    item.content ? richText(String(item.content)) : null,
    item.pattern
      ? codeBlock(String(item.pattern), looksLikeSparql(String(item.pattern)) ? "sparql" : "python")
      : null,
    h("p.quiet", {},
      "from ",
      originOf(item.provenance || {}),
      author ? ` · written by ${author}` : "",
      item.turns ? ` · ${many(item.turns, "turn")} to show` : "",
      shown.length
        ? [
            " · ",
            h(
              "a",
              { href: `#trials?${new URLSearchParams({ memory: item.id })}` },
              `shown to ${many(shown.length, "trial")}, ${right} right`,
            ),
          ]
        : " · shown to no trial",
      ` · ${item.id}`,
    ),
    h("ul.plain.places", {},
      item.places.slice(0, 12).map((place) => placeOf(item, place)),
      item.places.length > 12
        ? h("li.quiet", {}, `and in ${many(item.places.length - 12, "bank")} more`)
        : null,
    ),
  );
}
