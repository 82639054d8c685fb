/* Each static figure gives way to one that can be read with a pointer; where anything fails, it stays. */
"use strict";
(function () {
  const stored = document.getElementById("diagrams");
  const probe = document.createElement("span");
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });

  /* A colour of the theme as the three numbers that a canvas needs. */
  function plain(name) {
    probe.style.color = name;
    canvas.fillStyle = getComputedStyle(probe).color;
    canvas.fillRect(0, 0, 1, 1);
    const part = canvas.getImageData(0, 0, 1, 1).data;
    return "rgb(" + part[0] + "," + part[1] + "," + part[2] + ")";
  }

  function still(places) {
    for (const place of places) {
      place.closest("figure").classList.remove("alive");
      place.replaceChildren();
    }
  }

  async function draw() {
    const colours = /"(var\(--[\w-]+\)|color-mix\([^"]*\))"/g;
    const known = {};
    const text = stored.textContent.replace(colours, (_, name) => '"' + (known[name] ||= plain(name)) + '"');
    const found = JSON.parse(text);
    const places = Object.keys(found.roots).map((name) => document.getElementById(name));
    still(places);
    try {
      const roots = {};
      for (const place of places) {
        roots[found.roots[place.id]] = place;
        place.closest("figure").classList.add("alive");
      }
      const item = { docid: "diagrams", roots: roots, root_ids: Object.values(found.roots) };
      await Bokeh.embed.embed_items({ diagrams: found.document }, [item]);
      if (places.some((place) => !place.firstElementChild)) throw new Error("a figure was not drawn");
    } catch (trouble) {
      still(places);
      throw trouble;
    }
  }

  /* The policy of the page lets this script load the library, and no other. */
  function load() {
    const library = document.createElement("script");
    library.src = "LIBRARY";
    library.addEventListener("load", () => {
      document.body.append(probe);
      probe.hidden = true;
      const again = () => draw().catch((trouble) => console.error(trouble));
      matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
      again();
    });
    document.head.append(library);
  }

  if (stored) load();
})();
