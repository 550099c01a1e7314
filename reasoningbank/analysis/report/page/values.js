// What tools were given and gave back: tables where it is a table, handles where one is named.

const TABLE_ROWS = 25;
const LONG_TEXT = 4000;

/** A term as N-Triples writes it; the part of an IRI that tells it apart stands out. */
function term(text) {
  if (text === null || text === undefined || text === "")
    return h("span.quiet", {}, "unbound");
  const said = String(text);
  const iri = /^<([^<>\s]*[#/:])([^<>\s#/]*)>$/.exec(said);
  if (iri && iri[2]) {
    return h("span.term.iri", { title: said },
      h("span.base", {}, `<${iri[1]}`),
      iri[2],
      h("span.base", {}, ">"),
    );
  }
  const literal = /^("(?:[^"\\]|\\[\s\S])*")(@[\w-]+|\^\^\S+)$/.exec(said);
  if (literal) {
    const type = literal[2].replace(/^\^\^<?.*[#/]([^#/>]+)>?$/, "^^$1");
    return h("span.term", { title: said },
      literal[1],
      h("span.base", {}, type),
    );
  }
  return h("span.term", { title: said.length > 60 ? said : null }, said);
}

/** Makes text nodes in which known handles can be pressed. */
function withHandles(handles) {
  if (!handles.size) return (text) => [document.createTextNode(text)];
  const names = [...handles.keys()].map((name) => name.replace(/[^\w]/g, "\\$&"));
  const pattern = new RegExp(`\\b(${names.join("|")})\\b`, "g");
  return (text) =>
    text
      .split(pattern)
      .map((part, i) => (i % 2 ? handleLink(part, handles) : document.createTextNode(part)));
}

function handleLink(name, handles) {
  const event = handles.get(name);
  const title = `${name}: go to where it was made`;
  const button = h("button.handle", { type: "button", title }, name);
  button.addEventListener("click", () => {
    const target = byId(`event-${event}`);
    if (!target) return;
    target.scrollIntoView({ block: "center" });
    target.focus({ preventScroll: true });
    target.classList.remove("flash");
    requestAnimationFrame(() => target.classList.add("flash"));
  });
  return button;
}

/** The handles that a trial made, each with the number of the event that made it. */
function handlesOf(events) {
  const handles = new Map();
  const note = (name, event) => {
    if (!handles.has(name)) handles.set(name, event.index);
  };
  for (const event of events) {
    if (event.kind !== "tool_result") continue;
    const { result } = event.data;
    if (result && typeof result === "object" && typeof result.key === "string" && "dtype" in result)
      note(result.key, event);
    const said = typeof result === "string" ? result : "";
    for (const match of said.matchAll(/\bRef\('([^']+)', '/g)) note(match[1], event);
  }
  return handles;
}

const isPlain = (value) => value === null || typeof value !== "object";

function longText(text, plainText, language) {
  if (text.length <= LONG_TEXT)
    return h("pre.text", { tabindex: "0" }, coloured(text, language, plainText));
  const rest = folded(`all ${count(text.length)} characters`, () =>
    h("pre.text", {}, plainText(text)),
  );
  return [
    h("pre.text", { tabindex: "0" },
      coloured(text.slice(0, LONG_TEXT), language, plainText),
      "…",
    ),
    rest,
  ];
}

function tableOf(rows, plainText) {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const line = (row) =>
    h("tr", {},
      columns.map((name) => h("td", {}, name in row ? cellValue(row[name], plainText) : "")),
    );
  const table = h("div.scroll", { tabindex: "0" },
    h("table.data", {},
      h("thead", {},
        h("tr", {},
          columns.map((name) => h("th", { scope: "col" }, name)),
        ),
      ),
      h("tbody", {}, rows.slice(0, TABLE_ROWS).map(line)),
    ),
  );
  if (rows.length <= TABLE_ROWS) return table;
  const more = h("button.more", { type: "button" },
    `Show ${many(rows.length - TABLE_ROWS, "more row")}`,
  );
  more.addEventListener("click", () => {
    fill(table.querySelector("tbody"), rows.slice(TABLE_ROWS).map(line));
    more.remove();
  });
  return [table, more];
}

function cellValue(value, plainText) {
  if (value === null) return h("span.quiet", {}, "null");
  if (typeof value === "string") return /^[<"]/.test(value) ? term(value) : plainText(value);
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** Show any JSON value. */
function valueOf(value, plainText) {
  if (typeof value === "string") {
    if (refIn(value)) return refOf(refIn(value), plainText);
    if (looksLikeSparql(value)) return codeBlock(value, "sparql", plainText);
    return longText(value, plainText);
  }
  if (isPlain(value)) return h("code", {}, String(value));
  if (Array.isArray(value)) {
    if (!value.length) return h("span.quiet", {}, "nothing");
    const rows = value.every(
      (row) => row !== null && typeof row === "object" && !Array.isArray(row),
    );
    if (rows) return tableOf(value, plainText);
    if (value.every(isPlain)) return longText(value.map(String).join("\n"), plainText);
    return longText(JSON.stringify(value, null, 1), plainText, "json");
  }
  if (typeof value.key === "string" && "dtype" in value) return refOf(value, plainText);
  const lists = Object.entries(value).filter(
    ([, v]) => Array.isArray(v) && v.length && typeof v[0] === "object",
  );
  const facts = Object.entries(value).filter(
    ([, v]) => isPlain(v) || (Array.isArray(v) && v.every(isPlain)),
  );
  const rest = Object.entries(value).filter(
    (e) => !lists.some(([k]) => k === e[0]) && !facts.some(([k]) => k === e[0]),
  );
  return [
    facts.length > 0 && factsOf(facts, plainText),
    lists.map(([name, rows]) => labelled(name, valueOf(rows, plainText))),
    rest.map(([name, inner]) =>
      labelled(name, longText(JSON.stringify(inner, null, 1), plainText, "json")),
    ),
  ];
}

function factsOf(entries, plainText) {
  const said = (value) =>
    Array.isArray(value) ? value.map(String).join(", ") || "none" : String(value);
  return h("dl.facts", {},
    entries.map(([name, value]) =>
      h("div", {}, h("dt", {}, name), h("dd", {}, plainText(said(value)))),
    ),
  );
}

/** A handle as tools return it: `Ref('results_0', 'results', 10 items from UniProt)`. */
function refIn(text) {
  const found = /^Ref\('([^']+)', '([^']*)', (\d+) items from (.*)\)$/s.exec(text);
  return found && { key: found[1], dtype: found[2], rows: Number(found[3]), source: found[4] };
}

function refOf({ key, dtype, rows, source }, plainText) {
  const said = `${dtype}, ${many(rows ?? 0, "item")}${source ? ` from ${source}` : ""}`;
  return h("p.opened", {}, "opened ", plainText(key), ` ${said}`);
}
