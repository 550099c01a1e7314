// The page's own script: asking with steps as they happen, a run that goes on, and small actions.

byId("light").addEventListener("click", turnLight);

async function post(address, body, signal) {
  const options = { method: "POST", headers: { "Content-Type": "application/json" }, signal };
  const response = await fetch(address, { ...options, body: JSON.stringify(body) });
  if (response.ok) return response;
  const said = await response.json().catch(() => null);
  throw new Error(said?.error?.text || response.statusText || "the server did not answer");
}

/** Yield the events of a streamed answer: [name, data]. */
async function* eventsOf(response) {
  const decoder = new TextDecoder();
  let text = "";
  for (let reader = response.body.getReader(); ; ) {
    const { done, value } = await reader.read();
    if (done) return;
    text += decoder.decode(value, { stream: true }).replaceAll("\r", "");
    for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) {
      const fields = text.slice(0, end).split("\n").map((line) => /^(\w+): (.*)$/.exec(line));
      const named = Object.fromEntries(fields.filter(Boolean).map((found) => found.slice(1)));
      if (named.data) yield [named.event, JSON.parse(named.data)];
    }
  }
}

// -- asking -----------------------------------------------------------------------------------

const CHOICES = ["pack", "url", "agent", "lm", "memory"];
const chosen = () => Object.fromEntries(CHOICES.map((name) => [name, byId(name).value.trim()]));

/** The conversation that the next question follows up: its questions, and their answers. */
let thread = [];

function follow(turns) {
  thread = turns;
  byId("afresh").hidden = !thread.length;
  byId("question").placeholder = thread.length ? "Ask a follow-up …" : "Ask a question about the data …";
}

function showChoices() {
  const { pack, url, agent, lm, memory } = chosen();
  const parts = [agent, lm, pack || "no pack", url, memory && `memory ${memory}`];
  byId("chosen").textContent = parts.filter(Boolean).join(" · ");
}

async function showExamples() {
  const pack = byId("pack").value;
  const found = await fetch(`/api/examples?pack=${encodeURIComponent(pack)}`);
  const questions = found.ok ? await found.json() : [];
  if (pack !== byId("pack").value) return;
  const button = (text) =>
    h("button", { type: "button", onclick: () => { follow([]); byId("question").value = text; ask(); } }, text);
  replace(byId("examples"), questions.map(button));
}

function stepItem(step) {
  const code = step.code && h("pre.code", {}, coloured(step.code, step.language));
  const output = step.output && h("pre.text", {}, step.output);
  return h("li", {}, h("b", {}, step.name), " ", step.text, code, output);
}

/** A term with a link to its address, if it has one. */
function termNode(value, prefixes) {
  if (value === null || value === undefined) return "";
  const text = String(value);
  const [, prefix, local] = /^([^\s":<]*):(\S*)$/.exec(text) || [];
  const iri = /^<(https?:[^>]*)>$/.exec(text)?.[1] || (prefixes[prefix] && prefixes[prefix] + local);
  if (!/^https?:/.test(iri || "")) return text.replace(/^"([\s\S]*)"(@[\w-]+)?$/, "$1");
  return h("a", { href: iri, rel: "noreferrer", target: "_blank" }, text);
}

function resultTable(result) {
  if (!result.rows.length) return null;
  const head = h("tr", {}, result.columns.map((name) => h("th", { scope: "col" }, name)));
  const cells = (row) => result.columns.map((n) => h("td", {}, termNode(row[n], result.prefixes)));
  const body = result.rows.map((row) => h("tr", {}, cells(row)));
  const table = h("table.data", {}, h("thead", {}, head), h("tbody", {}, body));
  const more = result.total > result.rows.length;
  const note = more && h("p.quiet", {}, `The first ${result.rows.length} of ${many(result.total, "row")}.`);
  const label = { class: "scroll", tabindex: "0", role: "region", "aria-label": "Rows" };
  return [h("div", label, table), note];
}

function checkList(result) {
  const ran = result.total !== null;
  const items = [
    ran && h("li", {}, `The query ran: ${many(result.total, "row")}.`),
    ran && !result.findings.length && h("li", {}, "No check against the schema and the data found anything."),
    !ran && h("li.against", {}, result.sentence),
    ran && h("li.about", {}, "No check compares the query with the question: read it."),
    result.findings.map((one) => h("li.against", { title: one.code }, one.text)),
    result.explanation && h("li.about", {}, result.explanation),
    result.confidence != null && h("li.about", {}, `Of such answers ${percent(result.confidence)} were right in measured trials.`),
  ];
  return h("ul.checks", {}, items);
}

/** A query that can be changed and run again; `show` shows what it returned. */
function editor(sparql, asked, show) {
  const shown = h("pre", { "aria-hidden": "true" });
  const area = h("textarea", { "aria-label": "Query", spellcheck: "false", autocapitalize: "off" });
  const colour = () => replace(shown, coloured(area.value, "sparql"), "\n");
  const said = h("span.quiet", { role: "status" });
  const button = h("button", { type: "button", onclick: run }, "Run it again");
  const reset = h("button", { type: "button", onclick: () => { area.value = sparql; colour(); } }, "Reset");
  async function run() {
    button.disabled = true;
    said.textContent = "running …";
    try {
      show(await (await post("/api/query", { ...asked, question: "", sparql: area.value })).json());
      said.textContent = area.value === sparql ? "" : "Shown is your query, not the agent's.";
    } catch (error) {
      said.textContent = error.message;
    }
    button.disabled = false;
  }
  area.value = sparql;
  area.addEventListener("input", colour);
  area.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) run();
  });
  colour();
  return [h("div.editor", {}, shown, area), h("div.buttons", {}, said, reset, button)];
}

function thumbs(answer) {
  const said = h("span.quiet", { role: "status" }, "Was this right?");
  const button = (good, label) =>
    h("button", { type: "button", class: "thumb", "aria-pressed": "false",
      onclick: async (event) => {
        const pressed = event.currentTarget;
        try {
          said.textContent = (await (await post("/api/feedback", { id: answer.id, good })).json()).said;
          for (const one of pressed.parentNode.querySelectorAll(".thumb")) {
            one.setAttribute("aria-pressed", String(one === pressed));
          }
        } catch (error) {
          said.textContent = error.message;
        }
      } }, label);
  return h("div.buttons", {}, said, button(true, "✓ Right"), button(false, "✕ Wrong"));
}

function showAnswer(place, answer, asked) {
  const result = h("div", {});
  const show = (found) =>
    replace(result, h("p.said", {}, found.sentence), resultTable(found),
      h("h3", {}, "Why believe it, or not"), checkList(found));
  show(answer);
  const price = answer.dollars === null ? "no known price" : answer.dollars ? `$${answer.dollars.toFixed(4)}` : "free";
  const cost = [answer.status, many(answer.iterations, "turn"), many(answer.tool_calls, "tool call"),
    `${count(answer.prompt_tokens + answer.completion_tokens)} tokens`, duration(answer.seconds), price];
  const understood = answer.question && answer.question !== asked.question &&
    h("p.quiet", {}, `Understood as: ${answer.question}`);
  replace(place, understood, result, answer.sparql && [h("h3", {}, "Query"), editor(answer.sparql, asked, show)],
    thumbs(answer), h("p.cost", {}, cost.join(" · ")));
  announce(answer.sentence);
}

let asking = null;

async function ask() {
  const question = byId("question").value.trim();
  if (!question || asking) return;
  const asked = { ...chosen(), question, earlier: thread };
  const name = h("span", {}, "opening");
  const list = h("ol", {});
  const steps = h("details.steps.running", { open: true }, h("summary", {}, name), list);
  const place = h("div", {});
  byId("answers").prepend(h("article.answer", {}, h("h2", {}, question), steps, place));
  asking = new AbortController();
  byId("send").disabled = true;
  byId("stop").hidden = false;
  try {
    for await (const [event, data] of eventsOf(await post("/api/ask", asked, asking.signal))) {
      if (event === "notice") name.textContent = data.text.replace(/ …$/, "");
      if (event === "step") {
        list.append(stepItem(data));
        name.textContent = `${data.name} · ${duration(data.at)}`;
      }
      if (event === "error") throw new Error(data.text);
      if (event === "answer") {
        name.textContent = `${many(list.children.length, "step")} · ${duration(data.seconds)}`;
        steps.open = false;
        showAnswer(place, data, asked);
        follow([...thread, { question: data.question, answer: data.sentence.slice(0, 2000) }]);
        byId("question").value = "";
      }
    }
    if (!place.hasChildNodes()) throw new Error("the server stopped answering");
  } catch (error) {
    const said = error.name === "AbortError" ? "stopped" : error.message;
    place.append(h("p.note.error", { role: "alert" }, said));
    name.textContent = many(list.children.length, "step");
  }
  steps.classList.remove("running");
  asking = null;
  byId("send").disabled = false;
  byId("stop").hidden = true;
}

if (byId("ask")) {
  byId("ask").addEventListener("submit", (event) => { event.preventDefault(); ask(); });
  byId("stop").addEventListener("click", () => asking?.abort());
  byId("afresh").addEventListener("click", () => { follow([]); byId("question").focus(); });
  byId("choices").addEventListener("input", showChoices);
  for (const name of ["pack", "url"]) byId(name).addEventListener("change", () => follow([]));
  byId("pack").addEventListener("change", showExamples);
  byId("question").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); ask(); }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") asking?.abort();
    if (event.key !== "/" || event.target.closest("input, textarea, select")) return;
    event.preventDefault();
    byId("question").focus();
  });
  showChoices();
  showExamples();
}

// -- a run that goes on -----------------------------------------------------------------------

const MOST_LISTED = 200;

function armRow(arm) {
  const each = (total) => (arm.done ? total / arm.done : null);
  const right = arm.judged
    ? [h("progress", { value: arm.right, max: arm.judged, "aria-hidden": "true" }), `${arm.right} of ${arm.judged}`]
    : "–";
  const cells = [count(arm.done), right, short(Math.round(each(arm.tokens) || 0)), duration(each(arm.seconds))];
  const numeric = (at) => ({ class: at === 1 ? null : "number" });
  return h("tr", {}, h("th", { scope: "row" }, arm.arm), cells.map((cell, at) => h("td", numeric(at), cell)));
}

function trialRow(trial, report) {
  const [kind, sign] = { right: ["right", "✓"], wrong: ["wrong", "✕"] }[trial.outcome] || ["error", "!"];
  const facts = [trial.arm, trial.task, `${short(trial.tokens)} tokens`, duration(trial.seconds)];
  return h("a.trial-row", { href: report + trial.place },
    h(`span.mark.${kind}`, { "aria-hidden": "true" }, sign), h("span", {}, trial.question),
    h("span.quiet", {}, trial.outcome), h("small", {}, facts.join(" · ")));
}

if (byId("run")) {
  const name = encodeURIComponent(byId("run").dataset.name);
  const source = new EventSource(`/api/runs/${name}`);
  const on = (event, act) => source.addEventListener(event, (sent) => act(JSON.parse(sent.data || "null")));
  source.addEventListener("open", () => replace(byId("run-trials")));
  on("trial", (trial) => {
    byId("run-trials").prepend(trialRow(trial, `/runs/${name}`));
    while (byId("run-trials").children.length > MOST_LISTED) byId("run-trials").lastChild.remove();
  });
  on("progress", (run) => {
    byId("run-state").textContent = [run.status, `${run.done} of ${run.total} trials`, run.error].filter(Boolean).join(" · ");
    byId("run-progress").max = run.total || 1;
    byId("run-progress").value = run.done;
    const flight = (run.in_flight || []).map((key) => `${key.arm} · ${key.task}`).join(", ");
    byId("run-flight").textContent = flight && run.status === "running" ? `now: ${flight}` : "";
    replace(byId("run-arms"), run.arms.map(armRow));
  });
  on("end", () => source.close());
  on("error", (finding) => {
    // A lost connection comes without data, and is opened again.
    if (!finding) return;
    byId("run-state").textContent = finding.text;
    source.close();
  });
}

// -- memory -----------------------------------------------------------------------------------

for (const block of document.querySelectorAll("pre[data-language]")) {
  replace(block, coloured(block.textContent, block.dataset.language));
}

for (const button of document.querySelectorAll("[data-post]")) {
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      announce((await (await post(button.dataset.post, JSON.parse(button.dataset.body))).json()).said);
      location.reload();
    } catch (error) {
      button.after(h("span.note.error", { role: "alert" }, error.message));
    }
  });
}
document.documentElement.classList.add("ready");
