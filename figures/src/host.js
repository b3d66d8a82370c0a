// What the libraries expect of a browser, and the functions that Rust calls. `textWidth` comes from Rust.
const nothing = () => {};
globalThis.console = { log: nothing, info: nothing, debug: nothing, warn: nothing, error: nothing };
globalThis.performance = { now: () => 0 };
globalThis.clearTimeout = nothing;
globalThis.setTimeout = (work) => {
  Promise.resolve().then(work);
  return 0;
};
globalThis.structuredClone = (value) => {
  if (Array.isArray(value)) return value.map(structuredClone);
  if (value === null || typeof value !== 'object') return value;
  // An aggregate has its names in a set.
  if (value instanceof Set) return new Set([...value].map(structuredClone));
  if (value instanceof Map) return new Map([...value].map(structuredClone));
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, structuredClone(part)]));
};

globalThis.begin = () => {
  const isBold = (weight) => weight === 'bold' || weight === 'bolder' || +weight >= 600;
  vega.textMetrics.width = (item, text) => {
    if (text == null) return 0;
    const size = item.fontSize == null ? 11 : +item.fontSize;
    const width = textWidth(String(text).trim(), size, isBold(item.fontWeight));
    // A longer text is cut when it is drawn.
    return item.limit > 0 ? Math.min(width, item.limit) : width;
  };
};

// The SVG, then the warnings of both libraries.
globalThis.draw = async (text) => {
  const warnings = [], errors = [];
  const noted = (list) => (...parts) => {
    const text = parts.map((part) => (part && part.message) || String(part)).join(' ');
    // Panels with scales of their own: one without an interval or a published point gives the scale no extent of these.
    if (!text.startsWith('Infinite extent')) list.push(text);
    return logger;
  };
  const logger = {
    level: (level) => (level === undefined ? 2 : logger),
    error: noted(errors), warn: noted(warnings), info: () => logger, debug: () => logger,
  };
  // The libraries only warn if nothing is loaded.
  const refused = (url) => {
    errors.push(`a figure loads nothing, and its rows are in its spec: ${url}`);
    return Promise.reject(new Error('refused'));
  };
  const loader = { load: refused, sanitize: refused, http: refused, file: refused };
  const compiled = vegaLite.compile(JSON.parse(text), { logger }).spec;
  const view = new vega.View(vega.parse(compiled), { renderer: 'none', loader, logger });
  const svg = await view.toSVG();
  view.finalize();
  if (errors.length) throw new Error(errors.join('; '));
  return [svg, ...warnings];
};
