/* Loads of the search's index what a question needs: a part for all questions, and the words that begin as its own do. A word that is not among them may be a piece of others: then all parts are loaded. */
(() => {
  const names = LETTERS;
  const parts = {};
  const query = new URLSearchParams(location.search).get("q") || "";
  const load = (name) => new Promise((come) => {
    const script = document.createElement("script");
    script.src = `searchindex/${name}.js`;
    script.onload = script.onerror = come;
    document.body.append(script);
  });
  Search.part = (name, content) => { parts[name] = content; };
  const search = async () => {
    const words = [...Search._parseQuery(query)[1]];
    const first = words.map((word) => (/^[a-z]/.test(word) ? word[0] : "others"));
    const wanted = [...new Set(first)].filter((name) => names.includes(name));
    await Promise.all(["base", ...wanted].map(load));
    const all = (kind) => Object.assign({}, ...names.map((name) => (parts[name] || {})[kind]));
    const known = { ...all("terms"), ...all("titleterms") };
    if (words.some((word) => word.length > 2 && !Object.hasOwn(known, word))) {
      await Promise.all(names.filter((name) => !wanted.includes(name)).map(load));
    }
    const { base } = parts;
    const sections = Object.keys(base.alltitles);
    const titles = base.titles.map((title) => (typeof title === "number" ? sections[title] : title));
    const byWord = { terms: all("terms"), titleterms: all("titleterms") };
    Search.setIndex({ ...base, ...byWord, titles, filenames: base.docnames, indexentries: {} });
  };
  if (query.trim()) search();
})();
