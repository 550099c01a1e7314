// Small tokenisers for SPARQL, Python and JSON. They colour; they never change or drop a character.

const SPARQL_WORDS = new Set(
  (
    "ASK BASE BIND BY CONSTRUCT DESCRIBE DISTINCT EXISTS FILTER FROM GRAPH GROUP HAVING IN LIMIT " +
    "MINUS NAMED NOT OFFSET OPTIONAL ORDER PREFIX REDUCED SELECT SERVICE SILENT UNDEF UNION " +
    "VALUES WHERE AS ASC DESC SEPARATOR TRUE FALSE"
  ).split(" "),
);

const PYTHON_WORDS = new Set(
  (
    "and as assert async await break class continue def del elif else except finally for from " +
    "global if import in is lambda nonlocal not or pass raise return try while with yield " +
    "True False None match case"
  ).split(" "),
);

const LANGUAGES = {
  sparql: {
    token:
      /(?<comment>#[^\n]*)|(?<iri><[^<>"{}|^`\\\s]*>)|(?<string>"""[\s\S]*?"""|'''[\s\S]*?'''|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|(?<variable>[?$][\p{L}\p{N}_]+)|(?<name>[\p{L}_][\p{L}\p{N}_.-]*)?:(?<local>(?:[\p{L}\p{N}_:%-]|\\.|\.(?=[\p{L}\p{N}_:%-]))*)|(?<number>\b\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b)|(?<word>[\p{L}_][\p{L}\p{N}_]*)/gu,
    kind(groups, text, end) {
      if (groups.local !== undefined) return "prefixed";
      if (groups.word === undefined) return null;
      if (SPARQL_WORDS.has(groups.word.toUpperCase())) return "keyword";
      if (groups.word === "a") return "keyword";
      return /^\s*\(/.test(text.slice(end, end + 8)) ? "call" : "";
    },
  },
  python: {
    token:
      /(?<comment>#[^\n]*)|(?<string>(?:\b[rRbBfFuU]{1,2})?(?:"""[\s\S]*?(?:"""|$)|'''[\s\S]*?(?:'''|$)|"(?:[^"\\\n]|\\[\s\S])*"?|'(?:[^'\\\n]|\\[\s\S])*'?))|(?<number>\b\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?\b)|(?<word>[\p{L}_][\p{L}\p{N}_]*)/gu,
    kind(groups, text, end) {
      if (groups.word === undefined) return null;
      if (PYTHON_WORDS.has(groups.word)) return "keyword";
      return /^\s*\(/.test(text.slice(end, end + 8)) ? "call" : "";
    },
  },
  json: {
    token:
      /(?<string>"(?:[^"\\]|\\.)*")|(?<number>-?\b\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b)|(?<word>\b(?:true|false|null)\b)/gu,
    kind: (groups) => (groups.word === undefined ? null : "keyword"),
  },
};

/** Longer texts are shown as they are, so that no text can hold the page up. */
const COLOURED_CHARS = 60000;

const looksLikeSparql = (text) =>
  /\b(?:SELECT|ASK|CONSTRUCT|DESCRIBE)\b[\s\S]*[{<?]/i.test(text) &&
  /[{}]|\bDESCRIBE\b/i.test(text);

/** Colour the query within the quotes of a Python string. */
function queryInString(text, plainText) {
  const [, open, inside, close] = /^(\w*(?:"""|'''|"|'))([\s\S]*?)("""|'''|"|'|)$/.exec(text);
  return [...plainText(open), ...coloured(inside, "sparql", plainText), ...plainText(close)];
}

/** Return the coloured text as nodes. `plainText` makes nodes of uncoloured stretches. */
function coloured(text, language, plainText = (part) => [document.createTextNode(part)]) {
  const rules = LANGUAGES[language];
  if (!rules || text.length > COLOURED_CHARS) return plainText(text);
  const nodes = [];
  let at = 0;
  for (const match of text.matchAll(rules.token)) {
    const end = match.index + match[0].length;
    let kind = rules.kind(match.groups, text, end);
    if (kind === null) kind = Object.keys(match.groups).find((k) => match.groups[k] !== undefined);
    if (kind === "") continue;
    if (match.index > at) nodes.push(...plainText(text.slice(at, match.index)));
    // Agents write queries into strings of their code; those are worth reading too.
    const query = kind === "string" && language === "python" && looksLikeSparql(match[0]);
    const inner = query ? queryInString(match[0], plainText) : plainText(match[0]);
    nodes.push(h("span", { class: query ? "t-query" : `t-${kind}` }, inner));
    at = end;
  }
  if (at < text.length) nodes.push(...plainText(text.slice(at)));
  return nodes;
}

/** A block of code with a button to copy it. */
function codeBlock(text, language, plainText) {
  const code = h("code", {}, coloured(text, language, plainText));
  const block = h(`pre.code.${language}`, { tabindex: "0" }, code);
  return h("div.code-block", {}, copyButton(text), block);
}
