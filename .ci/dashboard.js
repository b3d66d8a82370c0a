// What is wrong with the page that is open: a list of sentences. .ci/dashboard.py runs this in the browser.
(() => {
  const wrong = [];
  const all = (selector) => [...document.querySelectorAll(selector)];
  const isHidden = (e) => e.closest("[aria-hidden=true], .hidden, .skip");
  const isVisible = (e) => e.checkVisibility({ visibilityProperty: true }) && !isHidden(e);
  const check = (elements, sentence, isWrong) => {
    for (const e of elements) if (isWrong(e)) wrong.push(`${sentence}: ${e.outerHTML.slice(0, 90)}`);
  };

  if (document.documentElement.scrollWidth > innerWidth) {
    const isWide = (e) => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".table");
    wrong.push("the page is wider than the window");
    check(all("main *").filter(isWide).slice(0, 3), "wide", () => true);
  }
  check(all(".effects .table"), "an effect is cut off", (e) => e.scrollWidth > e.clientWidth + 1);

  // Landmarks, headings, names.
  if (all("h1").length !== 1) wrong.push("there is not one h1");
  if (all("main").length !== 1) wrong.push("there is not one main");
  if (!document.documentElement.lang || !document.title) wrong.push("no language or title");
  let level = 0;
  for (const e of all("h1, h2, h3")) {
    const now = Number(e.tagName[1]);
    if (now > level + 1) wrong.push(`a heading is left out before ${e.textContent}`);
    level = now;
  }
  check(all("input:not([type=hidden]), select"), "no label", (e) => !e.labels.length && !e.ariaLabel);
  check(all("a, button, summary").filter(isVisible), "no name", (e) => !(e.ariaLabel || e.textContent.trim()));
  const isUnnamed = (e) => !isHidden(e) && !e.ariaLabel && !e.getAttribute("aria-labelledby");
  check(all("svg"), "a drawing without a text", isUnnamed);
  const isMissing = (e) => e.getAttribute("aria-labelledby").split(" ").some((id) => !document.getElementById(id));
  check(all("[aria-labelledby]"), "the text of an element is missing", isMissing);
  const ids = all("[id]").map((e) => e.id);
  if (new Set(ids).size !== ids.length) wrong.push("an id occurs twice");

  // Contrast of texts with what is behind them, as WCAG 2 defines it.
  const rgb = (text) => (text.match(/[\d.]+/g) || [0, 0, 0, 0]).map(Number);
  const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const light = (color) => {
    const [r, g, b] = color.map((v) => linear(v / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const color = rgb(getComputedStyle(e).backgroundColor);
      if (color.length < 4 || color[3] > 0) return color.slice(0, 3);
    }
    return [255, 255, 255];
  };
  const hasText = (e) => [...e.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.textContent.trim());
  const isDrawn = (e) => e.closest("svg") && e.checkVisibility();
  const isDim = (e) => {
    const style = getComputedStyle(e);
    const text = light(rgb(e.closest("svg") ? style.fill : style.color).slice(0, 3));
    const back = light(behind(e));
    return (Math.max(text, back) + 0.05) / (Math.min(text, back) + 0.05) < 4.5;
  };
  const texts = all("main *, header *").filter((e) => (isVisible(e) || isDrawn(e)) && hasText(e));
  check(texts.filter((e) => !["TITLE", "DESC"].includes(e.tagName.toUpperCase())), "too little contrast", isDim);
  return wrong;
})();
