// The records in the page: an index of all trials, and parts that are decoded when looked at.

const loaded = new Promise((done) => {
  if (document.readyState !== "loading") done();
  else document.addEventListener("DOMContentLoaded", done, { once: true });
});

/** Decode the part of the page with this id. */
async function decode(id) {
  // A part may stand behind what the browser has read of the page so far.
  if (!byId(id)) await loaded;
  const node = byId(id);
  if (!node) throw new Error(`this page has no part ${id}; make the report again`);
  const binary = atob(node.textContent);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i += 1) bytes[i] = binary.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

const store = {
  arms: [],
  tasks: [],
  trials: [],
  byKey: new Map(),
  blocks: new Map(),
};

const keyOf = (arm, task, seed) => JSON.stringify([arm, task, String(seed)]);

/** Read the index: one small object a trial. */
async function openStore() {
  const index = await decode("index");
  Object.assign(store, { arms: index.arms, tasks: index.tasks });
  const tasks = new Map(store.tasks.map((task) => [task.id, task]));
  const columns = index.trials;
  const size = columns.arm ? columns.arm.length : 0;
  for (let i = 0; i < size; i += 1) {
    const trial = { number: i };
    for (const [name, column] of Object.entries(columns)) trial[name] = column[i];
    trial.task = tasks.get(trial.task);
    store.trials.push(trial);
    store.byKey.set(keyOf(trial.arm, trial.task.id, trial.seed), trial);
  }
  rank();
}

/** Order trials by task, arm and seed once; comparing names each time would be slow. */
function rank() {
  const { compare } = new Intl.Collator("en", { numeric: true });
  const tasks = [...store.tasks].sort((a, b) => compare(a.id, b.id));
  tasks.forEach((task, at) => {
    task.rank = at;
  });
  const arms = new Map(store.arms.map((arm, at) => [arm, at]));
  const order = (a, b) =>
    a.task.rank - b.task.rank || arms.get(a.arm) - arms.get(b.arm) || a.seed - b.seed;
  [...store.trials].sort(order).forEach((trial, at) => {
    trial.rank = at;
  });
}

/** What the search looks at, made once. */
function searched(trial) {
  if (trial.text === undefined) {
    const { task } = trial;
    const parts = [task.id, task.question, trial.sparql, trial.error, trial.reason];
    trial.text = parts.join("\n").toLowerCase();
  }
  return trial.text;
}

/** Decode a block of long texts; the last few stay decoded. */
function block(number) {
  let found = store.blocks.get(number);
  if (found) store.blocks.delete(number);
  else found = decode(`payloads-${number}`);
  store.blocks.set(number, found);
  if (store.blocks.size > 24) store.blocks.delete(store.blocks.keys().next().value);
  return found;
}

/** Decode a whole trial, its long texts put back into place. */
async function openTrial(trial) {
  const id = `trial-${trial.number}`;
  if (!byId(id)) await loaded;
  if (!byId(id)) {
    throw new Error("this page holds a part of the trials; `reasoningbank report RUN --most N` puts more into it, and the run's folder has the record of each");
  }
  const whole = await decode(id);
  const places = Object.entries(whole.payloads);
  const blocks = new Map();
  await Promise.all(
    [...new Set(places.map(([, [number]]) => number))].map(async (number) => {
      blocks.set(number, await block(number));
    }),
  );
  const texts = new Map(places.map(([key, [number, at]]) => [key, blocks.get(number)[at]]));
  whole.events = whole.events.map((event) => ({ ...event, data: resolved(event.data, texts) }));
  return whole;
}

/** Put long texts back into the places that refer to them. */
function resolved(value, texts) {
  if (Array.isArray(value)) return value.map((inner) => resolved(inner, texts));
  if (value === null || typeof value !== "object") return value;
  const keys = Object.keys(value);
  if (keys.length === 1 && keys[0] === "$ref") return texts.get(value.$ref) ?? "";
  return Object.fromEntries(keys.map((key) => [key, resolved(value[key], texts)]));
}

/** The events of a trajectory that holds its own long texts, numbered from `first` on. */
function withPayloads({ events, payloads }, first) {
  const texts = new Map(Object.entries(payloads || {}));
  return events.map((event) => ({
    ...event,
    index: event.index + first,
    parent: typeof event.parent === "number" ? event.parent + first : event.parent,
    data: resolved(event.data, texts),
  }));
}

const trialHash = (trial) =>
  `#trial/${[trial.arm, trial.task.id, trial.seed].map(encodeURIComponent).join("/")}`;
