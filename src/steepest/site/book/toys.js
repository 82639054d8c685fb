/* Toys: a slider turns one number, and the lines of a drawing are calculated anew. Without this file the drawing stays as it is. */
const calculations = {
  parabola: (product) => {
    const path = [1];
    while (path.length <= 12 && Math.abs(path.at(-1)) < 1.6) path.push((1 - product) * path.at(-1));
    const places = path.map((x) => Math.max(-1.6, Math.min(1.6, x)));
    const factor = 1 - product;
    const word = Math.abs(factor) < 1e-9 ? "at the bottom in one step" : Math.abs(factor) < 1 - 1e-9 ? (factor > 0 ? "slides down" : "swings and settles")
      : Math.abs(factor) < 1 + 1e-9 ? "swings for ever" : "runs away";
    return { lines: { path: places.map((x) => [x, x * x / 2]) }, says: `each step multiplies by ${factor.toFixed(2).replace("-", "−")}: ${word}` };
  },
  catapult: (start) => {
    let error = 1, product = start, peak = 0;
    const risk = [], curvature = [];
    for (let step = 0; step <= 60; step += 1) {
      const height = 2 * Math.log10(Math.max(Math.abs(error), 1e-12));
      peak = Math.max(peak, height);
      risk.push([step, Math.max(-6, Math.min(4, height))]);
      curvature.push([step, Math.max(0, Math.min(4.6, product))]);
      if (height > 4 || product > 4.6) break;
      const share = error * error / 400;
      error = (1 - product + share) * error;
      product += share * (product - 4);
    }
    const says = risk.length < 61 ? "runs away" : peak > 0.01 ? `thrown up ${10 ** peak < 10 ? (10 ** peak).toFixed(1) : Math.round(10 ** peak)}-fold, ends at ηλ = ${product.toFixed(2)}`
      : `never rises, ends at ηλ = ${product.toFixed(2)}`;
    return { lines: { risk, curvature }, says };
  },
};
document.querySelectorAll(".toy").forEach((toy) => {
  const control = toy.querySelector(".control");
  const slider = control.querySelector("input");
  const said = toy.querySelector(".says");
  const value = control.querySelector("output");
  const show = () => {
    const { lines, says } = calculations[toy.dataset.toy](Number(slider.value));
    toy.querySelectorAll("[data-curve]").forEach((line) => {
      const [left, top, width, height, x0, x1, y0, y1] = line.dataset.place.split(" ").map(Number);
      line.setAttribute("points", lines[line.dataset.curve].map(([x, y]) =>
        `${(left + (x - x0) / (x1 - x0) * width).toFixed(1)},${(top + (y1 - y) / (y1 - y0) * height).toFixed(1)}`).join(" "));
    });
    value.textContent = Number(slider.value).toFixed(2);
    said.textContent = says;
    slider.setAttribute("aria-valuetext", `${value.textContent}: ${says}`);
  };
  control.hidden = false;
  slider.addEventListener("input", show);
  show();
});
