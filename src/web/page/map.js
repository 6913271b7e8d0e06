// The map: nodes lie as far apart as their round trips say, as well as a plane allows.

import { find, percent, roundTrip, say, show, svg } from "./dom.js";

const LIMITS = [20, 60, 120, 250];
const LEGEND = ["under 20 ms", "to 60 ms", "to 120 ms", "to 250 ms", "above"];

export const speed = (ms) => {
  const found = LIMITS.findIndex((limit) => ms < limit);
  return found < 0 ? LIMITS.length : found;
};

const place = new Map();
let drawnFor = "";

/** All-pairs distances over the links, in milliseconds; unknown ones are taken for far. */
function distances(names, links) {
  const count = names.length;
  const index = new Map(names.map((name, at) => [name, at]));
  const far = Math.max(100, ...links.map((link) => link.rtt_ms ?? 0)) * 1.3;
  const table = Array.from({ length: count }, (_, a) => Array.from({ length: count }, (_, b) => (a === b ? 0 : Infinity)));
  for (const link of links) {
    const [a, b] = [index.get(link.from), index.get(link.to)];
    if (a === undefined || b === undefined || link.state !== "up") continue;
    table[a][b] = table[b][a] = Math.min(table[a][b], Math.max(link.rtt_ms ?? far, 1));
  }
  for (let k = 0; k < count; k += 1) {
    for (let a = 0; a < count; a += 1) {
      for (let b = 0; b < count; b += 1) table[a][b] = Math.min(table[a][b], table[a][k] + table[k][b]);
    }
  }
  return table.map((row) => row.map((value) => (value === Infinity ? far : value)));
}

/** Stress majorization: each node moves to where its distances want it, weighted by how near the others are. */
function arrange(names, links) {
  const reach = distances(names, links);
  const most = Math.max(1, ...reach.flat());
  const wanted = reach.map((row, a) => row.map((value, b) => (a === b ? 0 : 0.35 + Math.sqrt(value / most))));
  let spots = names.map((name, at) => place.get(name) ?? { x: Math.cos((2 * Math.PI * at) / names.length), y: Math.sin((2 * Math.PI * at) / names.length) });
  for (let round = 0; round < (names.length > 80 ? 60 : 250); round += 1) {
    spots = spots.map((spot, a) => {
      let [x, y, total] = [0, 0, 0];
      for (let b = 0; b < spots.length; b += 1) {
        if (a === b) continue;
        const [dx, dy] = [spot.x - spots[b].x, spot.y - spots[b].y];
        const is = Math.hypot(dx, dy) || 0.001;
        const weight = 1 / wanted[a][b] ** 2;
        x += weight * (spots[b].x + (wanted[a][b] * dx) / is);
        y += weight * (spots[b].y + (wanted[a][b] * dy) / is);
        total += weight;
      }
      return total ? { x: x / total, y: y / total } : spot;
    });
  }
  turn(spots);
  names.forEach((name, at) => place.set(name, spots[at]));
}

/** The longest extent lies flat, this node (the first) on the left: the picture is the same on each visit. */
function turn(spots) {
  if (spots.length < 2) return;
  const middle = { x: spots.reduce((sum, spot) => sum + spot.x, 0) / spots.length, y: spots.reduce((sum, spot) => sum + spot.y, 0) / spots.length };
  let [xx, yy, xy] = [0, 0, 0];
  for (const spot of spots) {
    const [dx, dy] = [spot.x - middle.x, spot.y - middle.y];
    xx += dx * dx;
    yy += dy * dy;
    xy += dx * dy;
  }
  const angle = 0.5 * Math.atan2(2 * xy, xx - yy);
  for (const spot of spots) {
    const [dx, dy] = [spot.x - middle.x, spot.y - middle.y];
    spot.x = dx * Math.cos(angle) + dy * Math.sin(angle);
    spot.y = dy * Math.cos(angle) - dx * Math.sin(angle);
  }
  if (spots[0].x > 0) for (const spot of spots) spot.x = -spot.x;
  if (spots[0].y > 0) for (const spot of spots) spot.y = -spot.y;
}

/** Links whose arrangement matters: only a change of a quarter moves nodes. */
function shape(graph) {
  const bucket = (link) => (link.state === "up" && link.rtt_ms ? Math.round(Math.log2(Math.max(link.rtt_ms, 1)) * 2) : "-");
  return JSON.stringify([graph.nodes.map((node) => node.node), graph.links.map((link) => [link.from, link.to, bucket(link)])]);
}

/** From the plane of `arrange` to pixels. */
function fit(names, width, height) {
  const spots = names.map((name) => place.get(name));
  const edge = { x: Math.min(90, width * 0.16), top: 34, bottom: 46 };
  const box = (key) => [Math.min(...spots.map((spot) => spot[key])), Math.max(...spots.map((spot) => spot[key]))];
  const scale = ([low, high], from, to) => (value) => (high - low < 1e-6 ? (from + to) / 2 : from + ((value - low) / (high - low)) * (to - from));
  const [x, y] = [scale(box("x"), edge.x, width - edge.x), scale(box("y"), edge.top, height - edge.bottom)];
  return new Map(names.map((name, at) => [name, { x: x(spots[at].x), y: y(spots[at].y) }]));
}

function nodeWords(node) {
  if (node.this_node) return `${node.node}, this node`;
  if (node.state !== "up") return `${node.node}, ${node.state}`;
  const way = node.path.length > 2 ? `through ${node.path.slice(1, -1).join(", ")}` : "direct";
  return `${node.node}, ${roundTrip(node.rtt_ms)}, ${way}`;
}

function edge(link, at, crowded) {
  const [from, to] = [at.get(link.from), at.get(link.to)];
  if (!from || !to) return [];
  const up = link.state === "up";
  const lossy = up && link.loss_percent >= 1;
  const known = link.rtt_ms !== null && link.rtt_ms !== undefined;
  const classes = ["edge", link.knowledge, up ? "" : "down", lossy ? "lossy" : "", link.carries ? "carries" : "", up && known ? `r${speed(link.rtt_ms)}` : ""];
  const line = svg("path", { class: classes.join(" "), d: `M${from.x} ${from.y}L${to.x} ${to.y}` });
  const words = `${link.from} – ${link.to}: ${up ? `${link.knowledge === "announced" ? "about " : ""}${roundTrip(link.rtt_ms)}` : link.state}${lossy ? `, ${percent(link.loss_percent)} lost` : ""}`;
  line.append(svg("title", null, words));
  if (!up || !known || (crowded && !lossy) || link.knowledge === "announced") return [line, null];
  const text = lossy ? `${roundTrip(link.rtt_ms)}, ${percent(link.loss_percent)} lost` : roundTrip(link.rtt_ms);
  const share = 0.55;
  const label = svg("text", { class: lossy ? "rtt lossy" : "rtt", x: from.x + (to.x - from.x) * share, y: from.y + (to.y - from.y) * share + 4 }, text);
  return [line, label];
}

/** A journey's legs: each bows to its right, further out each time the same pair comes again. */
function legs(route, at) {
  const seen = new Map();
  const drawn = [];
  route.stops.slice(1).forEach((to, index) => {
    const from = route.stops[index];
    const [a, b] = [at.get(from), at.get(to)];
    if (!a || !b || from === to) return;
    const pair = [from, to].sort().join("\n");
    const lane = seen.get(pair) ?? 0;
    seen.set(pair, lane + 1);
    const length = Math.hypot(b.x - a.x, b.y - a.y) || 1;
    const [ux, uy] = [(b.x - a.x) / length, (b.y - a.y) / length];
    const bow = 20 + lane * 16;
    const middle = { x: (a.x + b.x) / 2 - uy * bow, y: (a.y + b.y) / 2 + ux * bow };
    const [start, end] = [towards(a, middle, 13), towards(b, middle, 20)];
    drawn.push(svg("path", { class: `leg ${route.kind}`, d: `M${start.x} ${start.y}Q${middle.x} ${middle.y} ${end.x} ${end.y}` }));
    const angle = (Math.atan2(b.y - middle.y, b.x - middle.x) * 180) / Math.PI;
    drawn.push(svg("path", { class: `tip ${route.kind}`, d: "M0 0L-12 -6.5L-9 0L-12 6.5Z", transform: `translate(${towards(b, middle, 12).x} ${towards(b, middle, 12).y}) rotate(${angle})` }));
    const badge = { x: (start.x + 2 * middle.x + end.x) / 4, y: (start.y + 2 * middle.y + end.y) / 4 };
    drawn.push(svg("circle", { class: `tip ${route.kind}`, cx: badge.x, cy: badge.y, r: 9 }), svg("text", { class: "step", x: badge.x, y: badge.y + 4 }, String(index + 1)));
  });
  return drawn;
}

function towards(from, to, by) {
  const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
  return { x: from.x + ((to.x - from.x) / length) * by, y: from.y + ((to.y - from.y) / length) * by };
}

/** Draws the graph; `route` is {stops, kind} or null, `pick` is called with a node's name. */
export function drawMap(graph, route, picked, pick) {
  const canvas = find("map");
  const { width, height } = canvas.getBoundingClientRect();
  if (width < 50 || height < 50) return;
  const names = graph.nodes.map((node) => node.node);
  if (drawnFor !== shape(graph)) {
    drawnFor = shape(graph);
    arrange(names, graph.links);
  }
  const at = fit(names, width, height);
  const crowded = graph.links.length > 24;
  const edges = graph.links.map((link) => edge(link, at, crowded));
  const vertices = graph.nodes.map((node) => {
    const { x, y } = at.get(node.node);
    const classes = ["vertex", node.this_node ? "own" : "", node.state === "up" ? "" : "down", picked === node.node ? "picked" : ""];
    const choose = (event) => {
      if (event.type === "keydown" && event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      pick(node.node);
    };
    return svg("g", { class: classes.join(" "), tabindex: 0, role: "button", "aria-pressed": picked === node.node, "aria-label": nodeWords(node), "data-focus": `node ${node.node}`, on: { click: choose, keydown: choose } },
      svg("circle", { cx: x, cy: y, r: node.this_node ? 11 : 9 }),
      svg("text", { x, y: y + 28 }, node.node));
  });
  canvas.setAttribute("viewBox", `0 0 ${width} ${height}`);
  canvas.classList.toggle("focused", route !== null);
  const key = JSON.stringify([graph, route, picked, width, height]);
  show(canvas, key, [
    ...edges.map(([line]) => line).filter(Boolean),
    ...edges.map(([, label]) => label).filter(Boolean),
    ...(route ? legs(route, at) : []),
    ...vertices,
  ]);
  const links = graph.links.filter((link) => link.knowledge === "measured" && link.state === "up");
  say(find("map-words"), `${graph.nodes.map(nodeWords).join("; ")}. ${links.map((link) => `${link.from} to ${link.to} ${roundTrip(link.rtt_ms)}, ${percent(link.loss_percent)} lost`).join("; ")}.`);
}

export function drawLegend() {
  const item = (classes, words) => {
    const line = svg("svg", { viewBox: "0 0 30 10", "aria-hidden": "true" }, svg("path", { class: `edge ${classes}`, d: "M2 5H28" }));
    const entry = document.createElement("li");
    entry.append(line, words);
    return entry;
  };
  find("legend").replaceChildren(
    ...LEGEND.map((words, index) => item(`r${index}`, words)),
    item("carries r0", "in use"),
    item("lossy r3", "loses packets"),
    item("announced", "between others, estimated"),
    item("down", "down"),
  );
}
