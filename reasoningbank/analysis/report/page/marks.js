// How a trial went, in one sign: never by colour alone.

const SIGNS = { right: "✓", wrong: "✕", error: "!", defect: "–" };
const SAID = {
  right: "right",
  wrong: "wrong",
  error: "infrastructure error or bug, not counted",
  defect: "defective gold, not counted",
};

function inWords(trial) {
  const partly = trial.outcome === "wrong" && trial.f1 > 0 ? `, row F1 ${trial.f1.toFixed(2)}` : "";
  return SAID[trial.outcome] + partly;
}

function mark(trial) {
  const partly = trial.outcome === "wrong" && trial.f1 > 0;
  const node = h(`span.mark.${trial.outcome}${partly ? ".partly" : ""}`, { "aria-hidden": "true" },
    SIGNS[trial.outcome],
  );
  if (partly) node.style.setProperty("--f1", trial.f1);
  return node;
}

function markLink(trial, current) {
  const label = `${trial.arm}, ${trial.task.id}, seed ${trial.seed}: ${inWords(trial)}`;
  const here = trial === current ? "true" : null;
  const said = { "aria-label": label, title: label, "aria-current": here };
  return h("a.mark-link", { href: trialHash(trial), ...said }, mark(trial));
}

/** The marks of one task in one arm; where there are many, their rate and a link to the list. */
function cell(trials, current) {
  if (!trials || !trials.length) return h("span.absent", { title: "no trial" }, "·");
  if (trials.length <= 8) return trials.map((trial) => markLink(trial, current));
  const counted = trials.filter((t) => t.outcome === "right" || t.outcome === "wrong");
  const right = counted.filter((t) => t.outcome === "right").length;
  const [{ arm, task }] = trials;
  const query = new URLSearchParams({ arm, task: task.id });
  return h("a.rate-link", { href: `#trials?${query}`, title: `${arm}, ${task.id}` },
    meter(counted.length ? right / counted.length : 0),
    `${right}/${counted.length}`,
  );
}

function meter(share) {
  const node = h("span.meter", { "aria-hidden": "true" }, h("span", {}));
  node.firstChild.style.width = percent(share);
  return node;
}
