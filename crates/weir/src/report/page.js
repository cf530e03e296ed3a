"use strict";
(() => {
  const tip = document.getElementById("tip");
  let near = null;

  const leave = () => {
    if (near) near.classList.remove("near");
    near = null;
    tip.hidden = true;
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
    for (const mark of svg.querySelectorAll("[data-tip]")) {
      const bar = mark.tagName === "rect";
      const across = bar ? Math.max(0, x - mark.dataset.x) : x - mark.dataset.x;
      const along = (y - mark.dataset.y) * (bar ? 3 : 1);
      const distance = across * across + along * along;
      if (distance < least) [best, least] = [mark, distance];
    }
    if (best !== near) leave();
    if (!best) return;
    near = best;
    near.classList.add("near");
    tip.textContent = near.dataset.tip;
    tip.hidden = false;
    const size = tip.getBoundingClientRect();
    const left = Math.min(event.clientX + 14, innerWidth - size.width - 8);
    const above = event.clientY - size.height - 14;
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${above > 8 ? above : event.clientY + 18}px`;
  };

  for (const svg of document.querySelectorAll(".chart svg")) {
    svg.addEventListener("pointermove", touch);
    svg.addEventListener("pointerdown", touch);
    svg.addEventListener("pointerleave", leave);
  }

  // What the style sheet says of each shape is written into it, so that the file stands alone.
  const PROPERTIES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "font-family", "font-size", "font-weight"];
  const standalone = (svg) => {
    const copy = svg.cloneNode(true);
    const from = svg.querySelectorAll("*");
    copy.querySelectorAll("*").forEach((shape, i) => {
      const style = getComputedStyle(from[i]);
      for (const property of PROPERTIES) shape.setAttribute(property, style.getPropertyValue(property));
      shape.removeAttribute("data-tip");
    });
    const { width, height } = svg.viewBox.baseVal;
    copy.setAttribute("width", width);
    copy.setAttribute("height", height);
    const paper = document.createElementNS(svg.namespaceURI, "rect");
    paper.setAttribute("width", "100%");
    paper.setAttribute("height", "100%");
    paper.setAttribute("fill", getComputedStyle(svg.closest("figure")).backgroundColor);
    copy.prepend(paper);
    return new XMLSerializer().serializeToString(copy);
  };

  for (const button of document.querySelectorAll(".save")) {
    button.addEventListener("click", () => {
      const figure = button.closest("figure");
      const svg = [...figure.querySelectorAll("svg")].find((s) => s.getBoundingClientRect().width > 0);
      const caption = figure.querySelector("figcaption span").textContent;
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([standalone(svg)], { type: "image/svg+xml" }));
      link.download = `weir-${caption.toLowerCase().replace(/[^a-z0-9]+/g, "-").slice(0, 80)}.svg`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
  }
})();
