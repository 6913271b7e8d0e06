// Builds elements, and writes numbers as people read them. Nothing is ever parsed as HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name === "on") {
      for (const [event, handler] of Object.entries(value)) node.addEventListener(event, handler);
    } else if (name.startsWith("aria-")) {
      node.setAttribute(name, String(value));
    } else if (value !== undefined && value !== null && value !== false) {
      node.setAttribute(name, value === true ? "" : String(value));
    }
  }
  node.append(...children.filter((child) => child !== undefined && child !== null));
  return node;
}

export const html = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
export const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
export const find = (id) => document.getElementById(id);

/** Replaces the children of a place, unless they already say the same: focus and screen readers are not disturbed. */
export function show(place, key, children) {
  if (place.dataset.shown === key) return;
  const focused = place.contains(document.activeElement) ? document.activeElement.dataset.focus : undefined;
  place.dataset.shown = key;
  place.replaceChildren(...children);
  if (focused) place.querySelector(`[data-focus="${CSS.escape(focused)}"]`)?.focus();
}

export function say(place, text) {
  if (place.textContent !== text) place.textContent = text;
}

const two = (value) => (value < 9.95 ? value.toFixed(1) : Math.round(value).toLocaleString("en"));

export function roundTrip(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms === 0) return "0 ms";
  return ms < 0.995 ? `${ms.toFixed(2)} ms` : `${two(ms)} ms`;
}

export function percent(value) {
  if (value === null || value === undefined) return "–";
  return value > 0 && value < 0.5 ? "<1 %" : `${Math.round(value)} %`;
}

export function octets(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (value >= 1023.5 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return unit === 0 ? `${Math.round(value)} B` : `${two(value)} ${units[unit]}`;
}

export function bits(octetsPerSecond) {
  const units = ["bit/s", "kbit/s", "Mbit/s", "Gbit/s"];
  let value = octetsPerSecond * 8;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return unit === 0 ? `${Math.round(value)} bit/s` : `${two(value)} ${units[unit]}`;
}

export function span(seconds) {
  if (seconds < 99.5) return `${Math.round(seconds)} s`;
  if (seconds < 99.5 * 60) return `${Math.round(seconds / 60)} min`;
  if (seconds < 48 * 3600) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} days`;
}

export const many = (count, one, more = `${one}s`) => `${count.toLocaleString("en")} ${count === 1 ? one : more}`;
