"use strict";
for (const film of document.querySelectorAll("[data-film]")) {
  const times = JSON.parse(film.dataset.film), image = film.querySelector("img");
  const button = film.querySelector("button"), slider = film.querySelector("input"), clock = film.querySelector("output");
  let timer = 0;
  const show = (frame) => {
    slider.value = frame;
    image.style.transform = `translateY(${-100 * frame / times.length}%)`;
    clock.value = `t = ${times[frame].toFixed(2)}`;
  };
  const play = (on) => {
    clearInterval(timer);
    timer = on ? setInterval(() => show((Number(slider.value) + 1) % times.length), 90) : 0;
    button.textContent = on ? "Pause" : "Play";
  };
  button.addEventListener("click", () => play(!timer));
  slider.addEventListener("input", () => { play(false); show(Number(slider.value)); });
  film.querySelector(".controls").hidden = false;
  show(0);
  if (!matchMedia("(prefers-reduced-motion: reduce)").matches) {
    new IntersectionObserver((seen) => { if (seen[0].isIntersecting !== Boolean(timer)) play(seen[0].isIntersecting); }).observe(image.parentElement);
  }
}
const theme = document.querySelector("#theme");
if (theme) {
  const dark = () => (document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const name = () => { theme.textContent = dark() ? "Light" : "Dark"; };
  theme.addEventListener("click", () => { document.documentElement.dataset.theme = dark() ? "light" : "dark"; name(); });
  theme.hidden = false;
  name();
}
for (const wide of document.querySelectorAll(".wide")) {
  const box = wide.querySelector(".scroll"), cue = wide.querySelector(".cue");
  const look = () => { cue.hidden = box.scrollLeft + box.clientWidth >= box.scrollWidth - 2; };
  box.addEventListener("scroll", look, { passive: true });
  new ResizeObserver(look).observe(box);
}
const select = (node) => { const range = document.createRange(); range.selectNodeContents(node); getSelection().removeAllRanges(); getSelection().addRange(range); };
for (const button of document.querySelectorAll(".copy")) {
  const code = button.parentElement.querySelector("code");
  const tell = (text) => { button.textContent = text; setTimeout(() => { button.textContent = "Copy"; }, 1500); };
  const plain = () => { select(code); tell(document.execCommand("copy") ? "Copied" : "Ctrl+C"); };
  button.addEventListener("click", () => {
    if (navigator.clipboard) navigator.clipboard.writeText(code.textContent).then(() => tell("Copied"), plain); else plain();
  });
  button.hidden = false;
}
