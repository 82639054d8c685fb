/* Slides of a chapter: arrow keys, page keys and space go forward and back. Without this file the page scrolls. */
const slides = [...document.querySelectorAll(".slide")];
const steps = {
  ArrowRight: 1, ArrowDown: 1, PageDown: 1, " ": 1, Enter: 1,
  ArrowLeft: -1, ArrowUp: -1, PageUp: -1, Backspace: -1,
  Home: -slides.length, End: slides.length,
};
let place = 0;
/* a reader who scrolls by hand goes on from the slide that is in the middle of the window */
let scrolled = true;
const inTheMiddle = () => {
  const distances = slides.map((slide) => {
    const box = slide.getBoundingClientRect();
    return Math.abs(box.top + box.height / 2 - innerHeight / 2);
  });
  return distances.indexOf(Math.min(...distances));
};
const step = (by) => {
  const from = scrolled ? inTheMiddle() : place;
  place = Math.max(0, Math.min(slides.length - 1, from + by));
  scrolled = false;
  slides[place].scrollIntoView();
  history.replaceState(null, "", `#${slides[place].id}`);
};
for (const kind of ["wheel", "touchmove", "mousedown", "hashchange"]) {
  addEventListener(kind, () => { scrolled = true; }, { passive: true });
}
addEventListener("keydown", (event) => {
  const by = event.key === " " && event.shiftKey ? -1 : steps[event.key];
  if (!by || event.ctrlKey || event.altKey || event.metaKey || event.target.closest("input, a")) return;
  event.preventDefault();
  step(by);
});
/* the reader's choice of light and dark in the book */
try {
  document.body.dataset.theme = localStorage.getItem("theme") || "auto";
} catch { /* pages from disk may have no storage */ }
