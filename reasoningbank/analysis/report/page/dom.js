// Making elements and words. Text from records only ever becomes text nodes.

/**
 * Make an element from `name.class.class`. Attributes: `on…` handlers, anything else as is; false,
 * null and undefined leave one out. Children: nodes, strings, numbers, arrays, or nothing.
 */
function h(named, attributes, ...children) {
  const [name, ...classes] = named.split(".");
  const node = document.createElement(name);
  if (classes.length) node.className = classes.join(" ");
  for (const [key, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  fill(node, children);
  return node;
}

function fill(node, children) {
  for (const child of [children].flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : String(child));
  }
  return node;
}

function replace(node, ...children) {
  node.replaceChildren();
  return fill(node, children);
}

/** A part of something larger, under its name. */
const labelled = (name, ...content) =>
  h("div.part", {}, h("span.part-name", {}, name), content);

const byId = (id) => document.getElementById(id);

const numbers = new Intl.NumberFormat("en");
const count = (n) => numbers.format(n);
const many = (n, one, more = `${one}s`) => `${count(n)} ${n === 1 ? one : more}`;

function short(n) {
  if (n < 1000) return String(n);
  return n < 100000 ? `${(n / 1000).toFixed(1)}k` : `${count(Math.round(n / 1000))}k`;
}

function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 0.095) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  return `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

const percent = (share) => `${Math.round(share * 100)} %`;

/** A folded part whose content is made when it is first opened. */
function folded(summary, make, attributes = {}) {
  const body = h("div.folded-body", {});
  const node = h("details.folded", { ...attributes }, h("summary", {}, summary), body);
  const build = () => {
    if (node.open && !body.hasChildNodes()) fill(body, [make()]);
  };
  node.addEventListener("toggle", build);
  build();
  return node;
}

/** A button that copies a text; left out where the browser offers no clipboard. */
function copyButton(text) {
  if (!navigator.clipboard) return null;
  const button = h("button.copy", { type: "button", "aria-label": "Copy" }, "copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "copied";
    } catch {
      button.textContent = "not allowed";
    }
    setTimeout(() => (button.textContent = "copy"), 1500);
  });
  return button;
}

/** Say something to those who listen to the page rather than see it. */
function announce(text) {
  byId("live").textContent = text;
}
