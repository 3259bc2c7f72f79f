// Lists what is wrong with a page: overlaps, cut texts, weak contrast. `checked` counts the texts.
const SLACK = 1.5;
const inside = (a, b) => a.left >= b.left - SLACK && a.right <= b.right + SLACK
  && a.top >= b.top - SLACK && a.bottom <= b.bottom + SLACK;
const overlap = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > SLACK
  && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > SLACK;
const luminance = (color) => {
  const parts = color.match(/[\d.]+/g).map(Number).slice(0, 3).map((each) => each / 255)
    .map((each) => (each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4));
  return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
};
const contrast = (a, b) => {
  const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x);
  return (high + 0.05) / (low + 0.05);
};
function pairs(elements, kind, wrong) {
  const boxes = elements.map((each) => [each, each.getBoundingClientRect()]);
  boxes.forEach(([one, a], index) => boxes.slice(index + 1).forEach(([other, b]) => {
    if (overlap(a, b)) wrong.push(`${kind} overlap: ${one.textContent} / ${other.textContent}`);
  }));
}
function measure(document, window) {
  const wrong = [], root = document.documentElement;
  document.querySelectorAll("details").forEach((each) => { each.open = true; });
  if (root.scrollWidth > root.clientWidth + 1) wrong.push(`the page is ${root.scrollWidth} wide`);
  const texts = [...document.querySelectorAll("svg text")];
  texts.forEach((text) => {
    const box = text.getBoundingClientRect();
    if (!inside(box, text.ownerSVGElement.getBoundingClientRect()))
      wrong.push(`outside of its drawing: ${text.textContent}`);
    const rect = text.parentNode.querySelector(":scope > rect");
    const behind = rect ? window.getComputedStyle(rect).fill
      : window.getComputedStyle(text.closest("figure") || document.body).backgroundColor;
    const ratio = contrast(window.getComputedStyle(text).fill, behind);
    if (ratio < 4.5) wrong.push(`contrast ${ratio.toFixed(2)}: ${text.textContent}`);
    if (rect && !inside(box, rect.getBoundingClientRect())) wrong.push(`cut: ${text.textContent}`);
  });
  document.querySelectorAll("g.node").forEach((node) => {
    pairs([...node.querySelectorAll("text")], "texts", wrong);
    pairs([...node.querySelectorAll("rect")], "boxes", wrong);
  });
  document.querySelectorAll("figure svg").forEach((svg) => {
    pairs([...svg.querySelectorAll("g.node")], "nodes", wrong);
    if (!inside(svg.getBoundingClientRect(), svg.closest("figure").getBoundingClientRect()))
      wrong.push("a drawing is wider than its rack");
  });
  document.querySelectorAll(".racks").forEach((grid) => pairs([...grid.children], "racks", wrong));
  document.querySelectorAll("h1, h2, p, li, summary, figcaption, figcaption span, td, th").forEach((each) => {
    if (each.scrollWidth > each.clientWidth + 1 && window.getComputedStyle(each).display !== "inline")
      wrong.push(`cut: ${each.textContent}`);
  });
  const reached = [...document.querySelectorAll("a[href], summary, [tabindex]")];
  return {
    wrong, checked: texts.length, paper: window.getComputedStyle(document.body).backgroundColor,
    unnamed: [...document.querySelectorAll("svg:not([aria-hidden]), [role=region]")]
      .filter((each) => !each.getAttribute("aria-label")).length,
    reached: reached.length, positive: reached.filter((each) => each.tabIndex > 0).length,
    active: document.querySelectorAll("script, iframe, img, object, form, [onload], [onclick]").length,
  };
}
