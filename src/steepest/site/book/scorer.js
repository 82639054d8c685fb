/* How results of the search are ordered: a claim comes first where its own name was asked for. The other numbers are Sphinx's. */
var Scorer = {
  score: ([docname, , anchor, , score]) => {
    const asked = (new URLSearchParams(location.search).get("q") || "").trim().toLowerCase().replace(/[\s_]+/g, "-");
    return docname === `claims/${asked}` ? score + (anchor ? 100 : 200) : score;
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
