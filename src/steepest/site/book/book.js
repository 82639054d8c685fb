/* Moving figures: one frame at a time, chosen by a slider. Without this file all frames are shown side by side. */
document.querySelectorAll(".slides").forEach((slides) => {
  const frames = [...slides.querySelectorAll(".frame")];
  const control = slides.querySelector(".control");
  const slider = control.querySelector("input");
  const value = control.querySelector("output");
  const show = () => {
    frames.forEach((frame, place) => { frame.hidden = place !== Number(slider.value); });
    value.textContent = frames[slider.value].dataset.value;
    slider.setAttribute("aria-valuetext", frames[slider.value].querySelector("figcaption").textContent.trim());
  };
  control.hidden = false;
  slides.classList.add("alive");
  slider.addEventListener("input", show);
  show();
});
