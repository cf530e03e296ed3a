"use strict";
(() => {
  const tip = document.getElementById("tip");
  const charts = document.querySelectorAll(".chart svg");
  let near = null;

  // Without a script each figure tells itself as the browser does it; with one, faster.
  const told = new Map();
  for (const title of document.querySelectorAll(".chart svg title")) {
    told.set(title.parentNode, title.textContent);
    title.remove();
  }
  const marks = new Map();
  const marksOf = (svg) => {
    if (!marks.has(svg)) marks.set(svg, [...svg.querySelectorAll("[data-x]")]);
    return marks.get(svg);
  };

  const leave = () => {
    if (near) near.classList.remove("near");
    near = null;
    tip.hidden = true;
  };

  const tell = (mark, x, y) => {
    if (mark !== near) leave();
    if (!mark) return;
    near = mark;
    near.classList.add("near");
    tip.textContent = told.get(near);
    tip.hidden = false;
    const size = tip.getBoundingClientRect();
    const left = Math.min(x + 14, innerWidth - size.width - 8);
    const above = y - size.height - 14;
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${above > 8 ? above : y + 18}px`;
  };

  // The nearest figure to the pointer, in the chart's own units.
  const touch = (event) => {
    const svg = event.currentTarget;
    const box = svg.getBoundingClientRect();
    const scale = svg.viewBox.baseVal.width / box.width;
    const x = (event.clientX - box.left) * scale;
    const y = (event.clientY - box.top) * scale;
    let best = null;
    let least = 40 * 40;
    for (const mark of marksOf(svg)) {
      const bar = mark.classList.contains("bar");
      const across = bar ? Math.max(0, x - mark.dataset.x) : x - mark.dataset.x;
      const along = (y - mark.dataset.y) * (bar ? 3 : 1);
      const distance = across * across + along * along;
      if (distance < least) [best, least] = [mark, distance];
    }
    tell(best, event.clientX, event.clientY);
  };

  // Arrow keys go from figure to figure.
  const step = (event) => {
    const svg = event.currentTarget;
    const all = marksOf(svg);
    const at = all.indexOf(near);
    const steps = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 };
    if (event.key === "Escape") return leave();
    if (!(event.key in steps) || !all.length) return;
    event.preventDefault();
    const mark = all[Math.min(Math.max(steps[event.key], 0), all.length - 1)];
    const box = svg.getBoundingClientRect();
    const scale = box.width / svg.viewBox.baseVal.width;
    tell(mark, box.left + mark.dataset.x * scale, box.top + mark.dataset.y * scale);
  };

  for (const svg of charts) {
    svg.addEventListener("pointermove", touch);
    svg.addEventListener("pointerdown", touch);
    svg.addEventListener("pointerleave", leave);
    svg.addEventListener("keydown", step);
    svg.addEventListener("blur", leave);
  }

  // What the style sheet says of each shape is written into it, so that the file stands alone.
  const PROPERTIES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "font-family", "font-size", "font-weight", "paint-order"];
  const LINE = 16;
  const shape = (name, attributes, text) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text) made.textContent = text;
    return made;
  };
  const broken = (text, most) => {
    const lines = [""];
    for (const word of text.split(/\s+/)) {
      const last = lines.length - 1;
      if (lines[last] && lines[last].length + word.length >= most) lines.push(word);
      else lines[last] += (lines[last] ? " " : "") + word;
    }
    return lines;
  };
  const standalone = (svg) => {
    const figure = svg.closest("figure");
    const copy = svg.cloneNode(true);
    const from = svg.querySelectorAll("*");
    copy.querySelectorAll("*").forEach((part, i) => {
      const style = getComputedStyle(from[i]);
      for (const property of PROPERTIES) part.setAttribute(property, style.getPropertyValue(property));
      if (told.has(from[i])) part.append(shape("title", {}, told.get(from[i])));
      for (const name of ["data-x", "data-y", "class"]) part.removeAttribute(name);
    });
    // The name above, the runs and their commands below.
    const { width, height } = svg.viewBox.baseVal;
    const ink = getComputedStyle(figure).color;
    const font = getComputedStyle(figure).fontFamily;
    const say = (lines, y, weight) => lines.map((line, i) =>
      shape("text", { x: 2, y: y + i * LINE, fill: ink, "font-family": font, "font-size": "12px", "font-weight": weight }, line));
    const most = Math.floor(width / 6.6);
    const above = broken(figure.querySelector("h3").textContent, most);
    const below = [...figure.querySelectorAll("figcaption p")].flatMap((p) => broken(p.textContent, most));
    const top = above.length * LINE + 8;
    const all = height + top + below.length * LINE + 12;
    const paper = shape("rect", { x: -8, y: -top - 4, width: width + 16, height: all + 8, fill: getComputedStyle(figure).backgroundColor });
    copy.prepend(paper, ...say(above, 12 - top, 700));
    copy.append(...say(below, height + LINE, 400));
    copy.setAttribute("viewBox", `-8 ${-top - 4} ${width + 16} ${all + 8}`);
    copy.setAttribute("width", width + 16);
    copy.setAttribute("height", all + 8);
    copy.removeAttribute("tabindex");
    copy.removeAttribute("class");
    return new XMLSerializer().serializeToString(copy);
  };

  for (const button of document.querySelectorAll(".save")) {
    button.hidden = false;
    button.addEventListener("click", () => {
      const figure = button.closest("figure");
      const svg = [...figure.querySelectorAll("svg")].find((s) => s.getBoundingClientRect().width > 0);
      const name = `${figure.querySelector("h3").textContent} ${figure.querySelector(".origin").textContent}`;
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([standalone(svg)], { type: "image/svg+xml" }));
      link.download = `weir-${name.toLowerCase().replace(/[^a-z0-9]+/g, "-").slice(0, 80)}.svg`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
  }

  const theme = document.getElementById("theme");
  theme.hidden = false;
  theme.addEventListener("click", () => {
    const root = document.documentElement;
    const dark = getComputedStyle(root).colorScheme === "dark";
    root.dataset.theme = dark ? "light" : "dark";
  });
})();
