/* How results of the search are ordered: the claim whose own name was asked for; the chapters to whose keywords the question belongs; chapters, claims and guides; the reference at last. The other numbers are Sphinx's. */
var Scorer = {
  keywords: KEYWORDS,
  score: ([docname, , anchor, , score]) => {
    const asked = (new URLSearchParams(location.search).get("q") || "").trim().toLowerCase().replace(/[\s_-]+/g, " ");
    if (docname === `claims/${asked.replaceAll(" ", "-")}`) return score + (anchor ? 300 : 400);
    const place = (Scorer.keywords[asked] || []).indexOf(docname);
    const lift = docname.startsWith("chapters/") ? 30 : docname.startsWith("reference/") ? -60 : 0;
    return score + lift + (place < 0 ? 0 : 200 - 20 * place);
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
