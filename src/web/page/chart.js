// Time charts and sparklines. Gaps in the samples stay gaps.

import { html, svg } from "./dom.js";

const MARGIN = { left: 62, right: 8, top: 8, bottom: 20 };

function runs(points) {
  const found = [];
  let run = [];
  for (const point of points) {
    if (point[1] === null || point[1] === undefined) {
      if (run.length) found.push(run);
      run = [];
    } else {
      run.push(point);
    }
  }
  if (run.length) found.push(run);
  return found;
}

const fixed = (value) => value.toFixed(1);
const line = (run) => `M${run.map(([x, y]) => `${fixed(x)} ${fixed(y)}`).join("L")}`;

/** A round number at or above the value, so that labels are short. */
function ceiling(value, least) {
  const wanted = Math.max(value, least);
  const power = 10 ** Math.floor(Math.log10(wanted));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((step) => step * power).find((step) => step >= wanted);
}

/** One chart: `series` are {name, values, words}, values in the order of `times` (seconds). */
export function chart({ title, times, series, format, least, width }) {
  const height = 150;
  const inner = { width: width - MARGIN.left - MARGIN.right, height: height - MARGIN.top - MARGIN.bottom };
  const known = series.flatMap((each) => each.values).filter((value) => value !== null && value !== undefined);
  const top = ceiling(Math.max(0, ...known) * 1.05, least);
  const last = times.at(-1) ?? 0;
  const length = Math.max(60, last - (times[0] ?? last));
  const x = (time) => MARGIN.left + inner.width * (1 - (last - time) / length);
  const y = (value) => MARGIN.top + inner.height * (1 - value / top);
  const drawing = svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": summary(title, series, format) });
  for (const share of [0, 0.5, 1]) {
    const at = y(top * share);
    drawing.append(
      svg("line", { class: "grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: at, y2: at }),
      svg("text", { x: MARGIN.left - 6, y: at + 4, "text-anchor": "end" }, format(top * share)),
    );
  }
  const minutes = length / 60;
  drawing.append(
    svg("text", { x: MARGIN.left, y: height - 5 }, minutes >= 2 ? `${Math.round(minutes)} min ago` : `${Math.round(length)} s ago`),
    svg("text", { x: width - MARGIN.right, y: height - 5, "text-anchor": "end" }, "now"),
  );
  series.forEach((each) => {
    for (const run of runs(each.values.map((value, index) => [x(times[index]), value === null ? null : y(value)]))) {
      const base = y(0);
      drawing.append(svg("path", { class: `area ${each.color}`, d: `${line(run)}L${fixed(run.at(-1)[0])} ${base}L${fixed(run[0][0])} ${base}Z` }));
      drawing.append(svg("path", { class: `line ${each.color}`, d: line(run) }));
      if (run.length === 1) drawing.append(svg("circle", { class: each.color, cx: run[0][0], cy: run[0][1], r: 2 }));
    }
  });
  const words = series.map((each) =>
    html("span", null, html("i", { class: `key ${each.color}` }), `${each.name ? `${each.name} ` : ""}${now(each, format)}`));
  return html("figure", null, html("figcaption", null, title, ...words), drawing);
}

function now(series, format) {
  const value = series.values.at(-1);
  return value === null || value === undefined ? "no answer" : format(value);
}

function summary(title, series, format) {
  const parts = series.map((each) => {
    const known = each.values.filter((value) => value !== null && value !== undefined);
    if (!known.length) return `${each.name} not known`;
    return `${each.name} now ${now(each, format)}, least ${format(Math.min(...known))}, most ${format(Math.max(...known))}`;
  });
  return `${title}: ${parts.join("; ")}`;
}

/** A line without axes, for a table. */
export function sparkline(values) {
  const [width, height] = [150, 26];
  const known = values.filter((value) => value !== null && value !== undefined);
  const drawing = svg("svg", { class: "spark", viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  if (!known.length) return drawing;
  const low = Math.min(...known) * 0.95;
  const reach = Math.max(Math.max(...known) - low, 1);
  const step = width / Math.max(values.length - 1, 1);
  const points = values.map((value, index) => [index * step, value === null ? null : height - 3 - ((value - low) / reach) * (height - 6)]);
  for (const run of runs(points)) drawing.append(svg("path", { d: line(run) }));
  return drawing;
}
