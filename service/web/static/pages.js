// Zoom of pictures, the pruning slider, and the focus on a problem or an answer; all else is HTML and htmx.
"use strict";

const ZOOM = { in: 1.25, out: 0.8 };

function zoom(button) {
  const svg = document.querySelector(`#${button.dataset.zooms} svg`);
  if (!svg) return;
  const whole = svg.viewBox.baseVal;
  const factor = ZOOM[button.dataset.zoom];
  const width = factor ? svg.width.baseVal.value * factor : button.closest("section").clientWidth - 4;
  svg.setAttribute("width", width);
  svg.setAttribute("height", (width * whole.height) / whole.width);
}

function show_step(slider) {
  const rows = document.querySelectorAll(`#${slider.dataset.steps} tbody tr`);
  const row = rows[Number(slider.value)];
  if (!row) return;
  rows.forEach((one) => one.classList.toggle("differs", one === row));
  document.getElementById(slider.dataset.says).textContent = row.dataset.says;
  const line = document.getElementById(slider.dataset.line);
  if (line) for (const end of ["x1", "x2"]) line.setAttribute(end, row.dataset.x);
  slider.setAttribute("aria-valuetext", row.dataset.says);
}

function fill_step(slider) {
  const row = document.querySelectorAll(`#${slider.dataset.steps} tbody tr`)[Number(slider.value)];
  document.getElementById(slider.dataset.fills).value = row.dataset.alpha;
  document.getElementById(slider.dataset.risk).value = "error";
}

function start(root) {
  root.querySelectorAll("input[data-steps]").forEach(show_step);
  root.querySelector("[data-focus]")?.focus();
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-zoom]");
  if (button) zoom(button);
  if (event.target.closest("[data-print]")) window.print();
});
document.addEventListener("input", (event) => {
  if (!event.target.matches("input[data-steps]")) return;
  show_step(event.target);
  fill_step(event.target);
});
document.addEventListener("DOMContentLoaded", () => start(document));
