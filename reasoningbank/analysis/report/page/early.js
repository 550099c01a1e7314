// Runs before anything is shown: the reader's choice of light or dark, and that scripts run.
(() => {
  const root = document.documentElement;
  root.classList.add("scripted");
  try {
    const theme = localStorage.getItem("reasoningbank-theme");
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
  } catch {
    // A page from a file may have no storage; the system's choice then holds.
  }
})();

function turnLight() {
  const { dataset } = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  dataset.theme = (dataset.theme || system) === "dark" ? "light" : "dark";
  try {
    localStorage.setItem("reasoningbank-theme", dataset.theme);
  } catch {
    // Without storage the choice holds until the page is left.
  }
}
