// Reading one trial: how it was judged, gold beside prediction, and what the agent did, turn by turn.

let reading = 0;

/** Show the trial that an address names. */
async function showTrial(arm, task, seed) {
  const view = byId("view-trial");
  const trial = store.byKey.get(keyOf(arm, task, seed));
  const ticket = (reading += 1);
  if (!trial) {
    replace(
      view,
      h("h1", { tabindex: "-1" }, "No such trial"),
      h("p", {}, `This run has no trial of arm ${arm} on task ${task} with seed ${seed}.`),
      h("p", {}, h("a", { href: "#trials" }, "All trials")),
    );
    return;
  }
  // Before its part is decoded, what the index knows is shown.
  replace(view, trialHead(trial), h("p.quiet", { role: "status" }, "Opening…"));
  let body;
  try {
    const whole = await openTrial(trial);
    body = trialBody(trial, whole);
  } catch (error) {
    body = [h("p.note.error", {}, `This trial cannot be shown: ${error.message}`)];
  }
  if (ticket !== reading) return;
  replace(view, trialHead(trial), body);
}

function neighbours(trial) {
  const found = list.found.includes(trial) ? list.found : [...store.trials].sort(taskOrder);
  const at = found.indexOf(trial);
  return { before: found[at - 1], after: found[at + 1], at, size: found.length };
}

function trialHead(trial) {
  const { before, after, at, size } = neighbours(trial);
  const back = list.query.toString();
  const step = (other, label, key, sign) =>
    other
      ? h("a.step", {
          href: trialHash(other),
          "aria-label": `${label} trial`,
          title: `${label} trial (${key})`,
        }, sign)
      : h("span.step", { "aria-hidden": "true" }, sign);
  return h("div.trial-head", {},
    h("nav.crumbs", { "aria-label": "Trials" },
      h("a", { href: back ? `#trials?${back}` : "#trials" }, "← Trials"),
      h("span.quiet", {}, `${count(at + 1)} of ${count(size)}`),
      step(before, "Previous", "k", "↑"),
      step(after, "Next", "j", "↓"),
    ),
    h("h1", { tabindex: "-1" }, trial.task.question || trial.task.id),
    h("p.chips", {},
      [
        trial.task.id,
        `arm ${trial.arm}`,
        `seed ${trial.seed}`,
        trial.step !== null && `step ${trial.step}`,
        trial.task.level,
        trial.task.complexity,
        trial.task.form,
        trial.task.group,
      ]
        .filter(Boolean)
        .map((text) => h("span.chip", {}, text)),
    ),
    siblings(trial),
  );
}

/** The same task in all arms and seeds. */
function siblings(trial) {
  const same = store.trials.filter((t) => t.task === trial.task).sort(taskOrder);
  if (same.length < 2) return null;
  const arms = store.arms.filter((arm) => same.some((t) => t.arm === arm));
  return h("div.siblings", { "aria-label": "The same task in other arms and seeds" },
    arms.map((arm) =>
      h("span.sibling", {},
        h("span.quiet", {}, arm),
        cell(same.filter((t) => t.arm === arm), trial),
      ),
    ),
  );
}

function trialBody(trial, whole) {
  const handles = handlesOf(whole.events);
  return [
    verdictOf(trial, whole),
    h("h2", {}, "Gold beside prediction"),
    sideBySide(whole),
    evidenceOf(whole),
    whole.answer
      ? [h("h2", {}, "Answer in words"), h("p.prose", {}, whole.answer)]
      : null,
    judgementsOf(whole),
    h("h2", {}, "What the agent did"),
    turnsOf(whole, handles),
    rolloutsOf(whole),
    h("h2", {}, "The record"),
    recordOf(whole),
  ];
}

function verdictOf(trial, whole) {
  const { verdict, usage } = whole;
  const words = {
    right: "Right",
    wrong: "Wrong",
    error: "Infrastructure error",
    defect: "Defective gold",
  };
  const how = {
    submitted: "the agent submitted",
    fallback: "extracted after the loop ended",
    exhausted: "a budget ended it",
    refused: "the agent refused",
    error: "not the agent's failure; not counted",
  };
  const share = (name, value) =>
    h("div", {}, h("dt", {}, name), h("dd", {}, Number(value ?? 0).toFixed(2)));
  const fact = (name, value) => h("div", {}, h("dt", {}, name), h("dd", {}, value));
  const extra =
    verdict && (verdict.extra_columns || []).length
      ? `extra columns: ${verdict.extra_columns.join(", ")}`
      : null;
  return h(`section.verdict.${trial.outcome}`, { "aria-label": "Verdict" },
    h("p.verdict-line", {},
      mark(trial),
      h("b", {}, words[trial.outcome]),
      h("span", {}, verdict ? verdict.reason : "It was not judged."),
    ),
    extra && h("p.quiet", {}, extra),
    whole.error && h("p.note.error", {}, whole.error),
    h("dl.tiles", {},
      fact("ended", h("span", { title: how[whole.status] || null }, whole.status)),
      verdict && [
        verdict.status !== "judged" && fact("verdict", verdict.status),
        share("precision", verdict.precision),
        share("recall", verdict.recall),
        share("row F1", verdict.f1),
        fact("rows", `${count(verdict.n_predicted ?? 0)} returned, ${count(verdict.n_gold ?? 0)} in the gold`),
        verdict.lenient && !verdict.strict && fact("leniently", "right"),
      ],
      fact("time", duration(usage.seconds)),
      fact("tokens", `${short(usage.prompt_tokens)} → ${short(usage.completion_tokens)}`),
      fact(
        "LM calls",
        count(usage.lm_calls) + (usage.cached_calls ? ` + ${usage.cached_calls} cached` : ""),
      ),
      fact("tool calls", count(usage.tool_calls)),
      usage.dollars !== null &&
        usage.dollars !== undefined &&
        fact("cost", `$${usage.dollars.toFixed(4)}`),
      whole.tries > 1 && fact("tries", count(whole.tries)),
    ),
  );
}

/** What other judges said, beside what execution says. */
function judgementsOf(whole) {
  const entries = Object.entries(whole.judgements || {});
  if (!entries.length) return null;
  return [
    h("h2", {}, "Other judges"),
    h("div.judges", {},
      entries.map(([name, said]) => {
        const agrees =
          whole.verdict && typeof said.success === "boolean"
            ? said.success === whole.verdict.strict
              ? "agrees with execution"
              : "differs from execution"
            : "";
        const confidence =
          typeof said.confidence === "number" ? `, confidence ${said.confidence.toFixed(2)}` : "";
        return h("section.judge", {},
          h("p", {},
            h("b", {}, name),
            ` says ${typeof said.success !== "boolean" ? "nothing" : said.success ? "right" : "wrong"}${confidence} `,
            agrees && h("span.chip", {}, agrees),
          ),
          said.reason && h("p.prose", {}, said.reason),
          (said.checked || []).length
            ? h("ul", {},
                said.checked.map((point) =>
                  h("li", {}, isPlain(point) ? String(point) : JSON.stringify(point)),
                ),
              )
            : null,
        );
      }),
    ),
  ];
}

/** The other attempts of a trial of which one was chosen. */
function rolloutsOf(whole) {
  const rollouts = whole.rollouts || [];
  if (!rollouts.length) return null;
  return [
    h("h2", {}, "Other attempts"),
    h("p.quiet", {},
      `${many(rollouts.length + 1, "attempt")} were made; the one above was chosen, without looking at the gold.`,
    ),
    rollouts.map((rollout, at) => {
      const { verdict, agreed, status, error } = rollout;
      const said = verdict ? (verdict.strict ? "right" : verdict.reason || "wrong") : "not judged";
      const right = verdict && verdict.strict;
      return h("section.rollout", {},
        h("p", {},
          h(`span.mark.${!verdict ? "error" : right ? "right" : "wrong"}`, {}, !verdict ? "!" : right ? "✓" : "✕"),
          h("b", {}, ` Attempt ${(rollout.number ?? at) + 1}`),
          h("span.quiet", {},
            ` ${[said, status, agreed !== undefined && agreed !== null && `result shared by ${agreed}`].filter(Boolean).join(" · ")}`,
          ),
        ),
        error ? h("p.note.error", {}, String(error)) : null,
        rollout.sparql
          ? codeBlock(String(rollout.sparql), "sparql")
          : h("p.quiet", {}, "no query"),
        rollout.trajectory && (rollout.trajectory.events || []).length
          ? folded("what was done in this attempt", () => {
              // Numbers of their own, so that a link leads to where it should.
              const events = withPayloads(rollout.trajectory, 100000 * (at + 1));
              return turnsOf({ events }, handlesOf(events));
            })
          : null,
      );
    }),
  ];
}

function recordOf(whole) {
  const facts = [
    ["started", whole.started],
    ["model", Object.entries(whole.model || {}) .map(([k, v]) => `${k} ${v}`) .join(" · ")],
    ["file", whole.file],
    ["memory snapshot", whole.memory],
    ["judging took", whole.judge_seconds ? duration(whole.judge_seconds) : ""],
  ].filter(([, value]) => value);
  return factsOf(facts, (text) => [text]);
}
