/* What the book does with scripts; without this file everything is there too. */

/* Moving figures: one frame at a time, chosen by a slider. Without this file all frames are shown side by side. */
document.querySelectorAll(".slides").forEach((slides) => {
  const frames = [...slides.querySelectorAll(".frame")];
  const control = slides.querySelector(".control");
  const slider = control.querySelector("input");
  const value = control.querySelector("output");
  const stops = [...slides.querySelectorAll(".stops span")];
  const show = () => {
    frames.forEach((frame, place) => { frame.hidden = place !== Number(slider.value); });
    stops.forEach((stop, place) => { stop.classList.toggle("now", place === Number(slider.value)); });
    value.textContent = frames[slider.value].dataset.value;
    slider.setAttribute("aria-valuetext", frames[slider.value].querySelector("figcaption").textContent.trim());
  };
  control.hidden = false;
  slides.classList.add("alive");
  slider.addEventListener("input", show);
  show();
});

/* The list of all claims: a field that leaves those with the words in it. */
const lists = [...document.querySelectorAll("ul.overview")];
if (lists.length > 1) {
  const field = document.createElement("input");
  field.type = "search";
  field.className = "filter";
  field.placeholder = "Filter: saddle, kernel, fails …";
  field.setAttribute("aria-label", "Show only claims with these words");
  const filter = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    lists.forEach((list) => {
      let left = 0;
      list.querySelectorAll("li").forEach((line) => {
        const text = line.textContent.toLowerCase();
        line.hidden = !words.every((word) => text.includes(word));
        left += line.hidden ? 0 : 1;
      });
      list.closest("section").hidden = left === 0;
    });
  };
  field.addEventListener("input", filter);
  lists[0].closest("section").before(field);
}

/* After a search the next press of Tab is at the first result, not at the first link of the menu. */
const results = document.querySelector("#search-results");
if (results && new URLSearchParams(location.search).get("q")) {
  results.tabIndex = -1;
  results.focus({ preventScroll: true });
}

/* The two menus of a narrow window open with Enter or space as well, and close with Escape. */
for (const [sign, toggle, drawer] of [
  ["label.nav-overlay-icon", "__navigation", ".sidebar-drawer"],
  ["label.toc-overlay-icon", "__toc", ".toc-drawer"],
]) {
  const box = document.getElementById(toggle);
  if (!box) continue;
  for (const label of document.querySelectorAll(sign)) {
    label.tabIndex = 0;
    label.setAttribute("role", "button");
    label.setAttribute("aria-label", box.getAttribute("aria-label"));
    label.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      box.checked = !box.checked;
      if (box.checked) document.querySelector(`${drawer} a`)?.focus();
    });
  }
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && box.checked) {
      box.checked = false;
      document.querySelector(sign).focus();
    }
  });
}
