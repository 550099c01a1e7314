// Gold beside prediction: the two queries, and the rows in which their results differ.

function sideBySide(whole) {
  const side = (title, query, none) =>
    h("section.side", {},
      h("h3", {}, title),
      query ? codeBlock(query, "sparql") : h("p.quiet", {}, none),
    );
  const old = "This record does not hold the gold query; it was made before records kept it.";
  return h("div.sides", {},
    side("Gold query", whole.gold, old),
    side("Submitted query", whole.sparql, "No query was submitted."),
  );
}

function differingSign(sign, said) {
  return h("span", { title: said },
    h("span", { "aria-hidden": "true" }, sign),
    h("span.unseen", {}, said),
  );
}

/**
 * One of the two results. `differing` are its rows that the other lacks, `of` in all;
 * `other` names the other's column for each of its own.
 */
function resultTable(title, result, { differing, of, sign, said, other }) {
  const total = result.n ?? (result.rows || []).length;
  const known = new Set(differing.map((row) => JSON.stringify(row)));
  const others = (result.rows || []).filter((row) => !known.has(JSON.stringify(row)));
  const column = (name) => {
    const renamed = other[name] && other[name] !== name;
    return h("th", { scope: "col" }, name, renamed && h("small", {}, `= ${other[name]}`));
  };
  const line = (row, differs) =>
    h("tr", { class: differs && "differs" },
      h("td.sign", {}, differs && differingSign(sign, said)),
      row.map((value) => h("td", {}, term(value))),
    );
  const left = total - differing.length - others.length;
  const rows = [...differing.map((row) => line(row, true)), ...others.map((row) => line(row))];
  const table = h("table.data", {},
    h("thead", {}, h("tr", {}, h("th", {}), (result.variables || []).map(column))),
    h("tbody", {}, rows),
  );
  const differ = of > 0 && h("span.differ", {}, ` · ${sign} ${count(of)} ${said}`);
  return h("div.side", {},
    h("p.caption", {}, h("b", {}, title), ` · ${many(total, "row")}`, differ),
    rows.length
      ? h("div.scroll", { tabindex: "0" }, table)
      : h("p.quiet", {}, total ? "Its rows were not kept." : "No rows."),
    rows.length > 0 && left > 0 && h("p.quiet", {}, `and ${many(left, "row")} more`),
  );
}

/** The results beside each other, differing rows first; or why there are none to show. */
function evidenceOf(whole) {
  const { evidence } = whole;
  if (!evidence || !evidence.gold) {
    const why =
      whole.verdict && whole.verdict.status === "judged"
        ? "This record holds no rows to compare; it was made before records kept them."
        : "Nothing was compared, so there are no rows to show.";
    return h("p.quiet", { id: "no-evidence" }, why);
  }
  const mapping = evidence.mapping || {};
  const back = Object.entries(mapping).map(([gold, predicted]) => [predicted, gold]);
  const missing = evidence.missing || [];
  const surplus = evidence.surplus || [];
  const { predicted } = evidence;
  return h("div.sides.evidence", {},
    resultTable("Gold result", evidence.gold, {
      differing: missing,
      of: evidence.n_missing ?? missing.length,
      sign: "−",
      said: "missing from the submitted query's result",
      other: mapping,
    }),
    predicted && (predicted.variables || []).length
      ? resultTable("Submitted query's result", predicted, {
          differing: surplus,
          of: evidence.n_surplus ?? surplus.length,
          sign: "+",
          said: "not in the gold's result",
          other: Object.fromEntries(back),
        })
      : h("p.quiet", {}, "The submitted query gave no result to compare."),
  );
}
