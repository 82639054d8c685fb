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
