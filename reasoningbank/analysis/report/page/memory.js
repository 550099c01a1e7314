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

function retrievedItem(item) {
  const score = typeof item.score === "number" ? item.score.toFixed(3) : "";
  return h(
    "article",
    { class: "item" },
    h(
      "p",
      {},
      sourceChip(item.src),
      h(
        "a",
        { href: `#memory/${encodeURIComponent(item.id ?? "")}` },
        item.title || item.id || "item",
      ),
      score && h("span", { class: "quiet" }, ` score ${score}`),
    ),
    item.text ? richText(String(item.text)) : null,
    h("p", { class: "quiet" }, "from ", originOf(item)),
  );
}

const sourceChip = (src) =>
  src ? h("span", { class: `chip src-${/^\w+$/.test(src) ? src : "other"}` }, src) : null;

async function showMemory(wanted) {
  if (!bank.items) {
    bank.items = await decode("memory");
    for (const item of bank.items) bank.byId.set(item.id, item);
    const sources = [...new Set(bank.items.map((item) => item.src).filter(Boolean))].sort();
    fill(
      byId("memory-source"),
      sources.map((src) => option(src, src)),
    );
    byId("memory-search").addEventListener("input", drawMemory);
    byId("memory-source").addEventListener("change", drawMemory);
  }
  if (wanted) {
    byId("memory-search").value = "";
    byId("memory-source").value = "";
  }
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

function drawMemory() {
  const words = byId("memory-search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const src = byId("memory-source").value;
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
    return (!src || item.src === src) && words.every((word) => text.includes(word));
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

function bankItem(item) {
  const number = store.items.indexOf(item.id);
  const shown = number < 0 ? [] : store.trials.filter((t) => t.items.includes(number));
  const right = shown.filter((t) => t.outcome === "right").length;
  const counters = Object.entries(item.counters || {}).map(([name, n]) => `${name} ${n}`);
  return h(
    "article",
    { class: "item", id: `item-${item.id}`, tabindex: "-1" },
    h(
      "p",
      {},
      sourceChip(item.src),
      h("b", {}, item.title || item.id),
      (item.tags || []).map((tag) => [" ", h("span", { class: "chip" }, tag)]),
    ),
    item.description ? h("p", { class: "prose" }, item.description) : null,
    item.content ? richText(String(item.content)) : null,
    item.pattern
      ? codeBlock(String(item.pattern), looksLikeSparql(String(item.pattern)) ? "sparql" : "python")
      : null,
    h(
      "p",
      { class: "quiet" },
      "from ",
      originOf(item.provenance || {}),
      counters.length ? ` · ${counters.join(", ")}` : "",
      shown.length
        ? [
            " · ",
            h(
              "a",
              { href: `#trials?${new URLSearchParams({ memory: item.id })}` },
              `shown to ${many(shown.length, "trial")}, ${right} right`,
            ),
          ]
        : "",
      ` · in ${many(item.snapshots.length, "snapshot")}: ${item.snapshots.slice(0, 4).join(", ")}${item.snapshots.length > 4 ? ", …" : ""}`,
    ),
  );
}
