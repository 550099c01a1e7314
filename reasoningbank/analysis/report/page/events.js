// The trajectory: one turn a call of the model, and in it what came of that call.

/** Group events into turns; what precedes the first call of the model stands by itself. */
function turnsFrom(events) {
  const turns = [];
  for (const event of events) {
    if (event.kind === "lm_call" || !turns.length) turns.push([]);
    turns.at(-1).push(event);
  }
  return turns;
}

function turnsOf(whole, handles) {
  if (!whole.events.length) return h("p.quiet", {}, "Nothing was recorded.");
  const plainText = withHandles(handles);
  let number = 0;
  const turns = turnsFrom(whole.events).map((events) => {
    const [first] = events;
    const call = first.kind === "lm_call" ? first : null;
    if (call) number += 1;
    const rest = call ? events.slice(1) : events;
    const acted = rest.some((e) => e.kind === "code" || e.kind === "tool_call");
    const submitted = rest.find((e) => e.kind === "submit")?.data.sparql;
    return h("li.turn", {},
      call && turnHead(call, number),
      call && replyOf(call, acted, submitted),
      nested(rest).map((node) => eventOf(node, { plainText })),
    );
  });
  return h("ol.turns", {}, turns);
}

/** Put events under the one they belong to, where that one is at hand. */
function nested(events) {
  const nodes = new Map(events.map((event) => [event.index, { event, children: [] }]));
  const tops = [];
  for (const node of nodes.values()) {
    const parent = nodes.get(node.event.parent);
    (parent ? parent.children : tops).push(node);
  }
  return tops;
}

function turnHead(call, number) {
  const { data } = call;
  const tokens =
    data.prompt_tokens === undefined
      ? ""
      : `${short(data.prompt_tokens)} → ${short(data.completion_tokens ?? 0)} tokens`;
  const cached = data.cached_prompt_tokens
    ? `${short(data.cached_prompt_tokens)} from the prefix cache`
    : "";
  const role = data.role && data.role !== "solver" ? data.role : "";
  return h("header.turn-head", { id: `event-${call.index}`, tabindex: "-1" },
    h("h3", {}, `Turn ${number}`),
    h("span.quiet", {},
      [
        role,
        duration(call.seconds),
        tokens,
        cached,
        data.cached ? "cached call" : "",
        data.finish_reason && data.finish_reason !== "stop" ? `ended by ${data.finish_reason}` : "",
      ]
        .filter(Boolean)
        .join(" · "),
    ),
  );
}

/** The sections of a reply in DSPy's format, or the whole of it as one. */
function sectionsOf(text) {
  const parts = text.split(/^\[\[ ## (\w+) ## \]\]\s*$/m);
  const sections = [];
  if (parts[0].trim()) sections.push(["", parts[0].trim()]);
  for (let i = 1; i < parts.length; i += 2) {
    const body = (parts[i + 1] || "").trim();
    if (body) sections.push([parts[i], body]);
  }
  return sections;
}

/** Parts of a reply that the events below it show better. */
const ACTS = new Set(["code", "next_tool_name", "next_tool_args", "completed"]);

function replyOf(call, acted, submitted) {
  const { response, messages, error } = call.data;
  const text =
    typeof response === "string"
      ? response
      : response === undefined || response === null
        ? ""
        : JSON.stringify(response, null, 1);
  const sections = sectionsOf(text);
  const below = (name, body) =>
    name === "completed" ||
    (acted && ACTS.has(name)) ||
    (submitted && (name === "sparql" || body === submitted.trim()));
  const shown = sections.filter(([name, body]) => !below(name, body));
  return [
    error && h("p.note.error", {}, String(error)),
    shown.map(([name, body]) =>
      h("div.said", {},
        name && name !== "reasoning" && h("span.part-name", {}, name),
        richText(body),
      ),
    ),
    h("div.folds", {},
      messages && messages.length
        ? folded(`prompt, ${many(messages.length, "message")}`, () => messages.map(messageOf))
        : null,
      text ? folded("the whole reply", () => h("pre.text", {}, text)) : null,
    ),
  ];
}

function messageOf({ role, content }) {
  const text = typeof content === "string" ? content : JSON.stringify(content, null, 1);
  return h("section.message", {},
    h("span.part-name", {}, `${role} · ${count(text.length)} characters`),
    h("pre.text", {}, text),
  );
}

/** Prose with fenced code. */
function richText(text) {
  const parts = text.split(/```(\w*)\n([\s\S]*?)(?:```|$)/);
  const nodes = [];
  for (let i = 0; i < parts.length; i += 3) {
    if (parts[i].trim()) {
      const query = parts.length === 1 && looksLikeSparql(parts[i]);
      nodes.push(query ? codeBlock(parts[i].trim(), "sparql") : h("p.prose", {}, parts[i].trim()));
    }
    if (i + 2 < parts.length)
      nodes.push(codeBlock(parts[i + 2].trimEnd(), languageOf(parts[i + 1], parts[i + 2])));
  }
  return nodes;
}

function languageOf(name, text) {
  if (["python", "py", "repl"].includes(name)) return "python";
  if (name === "sparql" || (!name && looksLikeSparql(text))) return "sparql";
  return name === "json" ? "json" : "text";
}

function when(event) {
  if (!event.seconds) return null;
  return h("span.quiet.when", { title: `${event.at.toFixed(2)} s after the start` },
    duration(event.seconds),
  );
}

function eventOf(node, reader) {
  const make = EVENTS[node.event.kind] || EVENTS.unknown;
  return make(node.event, node.children, reader);
}

const box = (event, kind, head, ...rest) =>
  h(`section.event.${kind}`, { id: `event-${event.index}`, tabindex: "-1" },
    h("header.event-head", {}, head),
    rest,
  );

const EVENTS = {
  code(event, children, reader) {
    const { code, output, error } = event.data;
    const failed = error || /^\[Error\]/.test(output || "");
    return box(
      event,
      "code-event",
      [h("b", {}, "Python"), when(event)],
      codeBlock(String(code ?? ""), "python", reader.plainText),
      children.map((child) => eventOf(child, reader)),
      output
        ? h(`div.output${failed ? ".failed" : ""}`, {},
            h("span.part-name", {}, "prints"),
            longText(String(output), reader.plainText),
          )
        : null,
      error ? h("p.note.error", {}, String(error)) : null,
    );
  },

  tool_call(event, children, reader) {
    const { tool, arguments: given } = event.data;
    const entries = given && typeof given === "object" ? Object.entries(given) : [];
    const long = (value) =>
      typeof value === "string" && (value.length > 80 || looksLikeSparql(value));
    const brief = entries.filter(([, value]) => !long(value));
    const said = brief.map(([name, value], i) => [
      i ? ", " : "",
      `${name}=`,
      reader.plainText(typeof value === "string" ? JSON.stringify(value) : JSON.stringify(value)),
    ]);
    const result = children.find((child) => child.event.kind === "tool_result");
    return box(
      event,
      "tool",
      [
        h("b.tool-name", {}, tool),
        h("code.arguments", {},
          "(",
          said,
          brief.length < entries.length ? (brief.length ? ", …" : "…") : "",
          ")",
        ),
        result && when(result.event),
      ],
      entries
        .filter(([, value]) => long(value))
        .map(([name, value]) =>
          labelled(
            name,
            looksLikeSparql(value)
              ? codeBlock(value, "sparql", reader.plainText)
              : longText(value, reader.plainText),
          ),
        ),
      children.map((child) => eventOf(child, reader)),
    );
  },

  tool_result(event, children, reader) {
    const { result, error } = event.data;
    const place = { id: `event-${event.index}`, tabindex: "-1" };
    const node = error
      ? h("div.result.failed", place, h("p.note.error", {}, String(error)))
      : h("div.result", place, valueOf(result ?? "", reader.plainText));
    return [node, children.map((child) => eventOf(child, reader))];
  },

  memory_retrieved(event, children, reader) {
    const { query, items = [], tokens, skipped, at_random: atRandom } = event.data;
    const removed = event.data.filtered_out ?? event.data.withheld;
    const { demonstrations = [] } = event.data;
    return box(
      event,
      "memory",
      [
        h("b", {}, "Memory"),
        h("span.quiet", {},
          [
            many(items.length, "item"),
            demonstrations.length > 0 && many(demonstrations.length, "demonstration"),
            tokens && `${count(tokens)} tokens`,
            atRandom && "drawn at random",
            query && `for “${query}”`,
          ]
            .filter(Boolean)
            .join(" · "),
        ),
      ],
      items.map(retrievedItem),
      demonstrations.map(({ id, trial, text }) =>
        folded(`shown as a demonstration: turns of ${trial || id}`, () =>
          longText(String(text), reader.plainText),
        ),
      ),
      heldBack("removed by the leakage filter", removed),
      heldBack("found, and not shown", skipped),
    );
  },

  /** A step of a pipeline or graph: its name, short facts in a line, queries and tables below. */
  step(event, children, reader) {
    const { step, ...data } = event.data;
    const named = (name) => name.replaceAll("_", " ");
    const said = Object.entries(data).filter(
      // A confidence that was not measured reads as a probability.
      ([name, v]) =>
        v !== null && v !== "" && !(typeof v === "object" && !Object.keys(v).length) &&
        !(["confidence", "score", "calibrated"].includes(name) && data.calibrated === false),
    );
    const wide = ([, v]) =>
      typeof v === "string"
        ? v.length > 80 || looksLikeSparql(v)
        : Array.isArray(v) && v.some((one) => !isPlain(one) && !("id" in one));
    const brief = (v) => {
      if (typeof v === "number") return Number.isInteger(v) ? count(v) : String(+v.toFixed(2));
      if (isPlain(v)) return String(v === true ? "yes" : v === false ? "no" : v);
      if (!Array.isArray(v)) return Object.entries(v).map(([k, n]) => `${k} ${brief(n)}`).join(", ");
      return v.map((one) => (isPlain(one) ? brief(one) : `${one.id}${"score" in one ? ` (${brief(one.score)})` : ""}`)).join(", ");
    };
    return box(
      event,
      "step-event",
      [h("b", {}, named(String(step ?? "step"))), when(event)],
      h("p.step-facts", {},
        said
          .filter((entry) => !wide(entry))
          .map(([name, value], at) => [
            at ? " · " : "",
            h("span.quiet", {}, `${named(name)} `),
            brief(value),
          ]),
      ),
      said.filter(wide).map(([name, value]) =>
        labelled(
          named(name),
          typeof value === "string" ? richText(value) : valueOf(value, reader.plainText),
        ),
      ),
      children.map((child) => eventOf(child, reader)),
    );
  },

  submit(event, children, reader) {
    const { sparql, answer, status } = event.data;
    return box(
      event,
      "submit",
      [h("b", {}, "Submits"), status && h("span.quiet", {}, status)],
      sparql
        ? codeBlock(String(sparql), "sparql", reader.plainText)
        : h("p.quiet", {}, "no query"),
      answer ? h("p.prose", {}, String(answer)) : null,
    );
  },

  error(event, children, reader) {
    const { error, reply } = event.data;
    return box(
      event,
      "failure",
      [h("b", {}, "Error"), when(event)],
      h("p.note.error", {}, String(error ?? "")),
      reply ? folded("the reply", () => longText(String(reply), reader.plainText)) : null,
    );
  },

  unknown(event, children, reader) {
    return box(
      event,
      "other",
      [h("b", {}, event.kind), when(event)],
      valueOf(event.data, reader.plainText),
      children.map((child) => eventOf(child, reader)),
    );
  },
};
