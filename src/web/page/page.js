// Asks the daemon every two seconds and draws what it says.

import { chart, sparkline } from "./chart.js";
import { bits, find, html, many, octets, percent, roundTrip, say, show, span } from "./dom.js";
import { drawLegend, drawMap } from "./map.js";

const PERIOD = 2000;
const KEPT = 300;

const history = new Map();
const chosen = { policy: null, node: null, link: null, found: null };
let view = null;
let seen = 0;

async function refresh() {
  try {
    const answer = await fetch(`/api/view?since=${seen}`, { cache: "no-store" });
    if (!answer.ok) throw new Error(await answer.text());
    take(await answer.json());
    live("live", "good");
  } catch {
    live("no answer, trying again", "bad");
    // A restarted daemon counts from the start.
    seen = 0;
  }
}

async function loop() {
  for (;;) {
    if (document.hidden) {
      live("paused", "");
      await new Promise((visible) => document.addEventListener("visibilitychange", visible, { once: true }));
    }
    await refresh();
    await new Promise((next) => setTimeout(next, PERIOD));
  }
}

function live(words, kind) {
  say(find("live"), words);
  find("live").className = `live ${kind}`;
}

function take(next) {
  if (seen === 0) history.clear();
  view = next;
  seen = next.number;
  for (const [link, samples] of Object.entries(next.history)) {
    history.set(link, [...(history.get(link) ?? []), ...samples].slice(-KEPT));
  }
  for (const link of history.keys()) if (!(link in next.history)) history.delete(link);
  draw();
}

function draw() {
  if (!view) return;
  drawHead();
  drawMap(view.graph, route(), chosen.node, pickNode);
  say(find("shown"), shown());
  find("clear").hidden = route() === null;
  drawProblems();
  drawPolicies();
  drawLinks();
  drawDrops();
}

function drawHead() {
  const { status } = view;
  const up = status.nodes.filter((node) => node.state === "up").length;
  document.title = `${status.node} – viamesh`;
  say(find("node"), status.node);
  const problems = status.problems.length ? `, ${many(status.problems.length, "problem")}` : "";
  say(find("summary"), `${up} of ${many(status.nodes.length, "other node")} up${problems} · running for ${span(status.uptime_seconds)} · viamesh ${status.version}`);
}

/** What is lit up on the map. */
function route() {
  if (chosen.found) return { stops: chosen.found, kind: "found" };
  if (chosen.node) {
    const node = view.graph.nodes.find((each) => each.node === chosen.node);
    return node && node.path.length > 1 ? { stops: node.path, kind: "found" } : null;
  }
  const journey = view.graph.journeys.find((each) => each.policy === chosen.policy);
  return journey ? { stops: journey.stops, kind: journey.state === "up" ? "" : "off" } : null;
}

function shown() {
  if (chosen.found) return `The packet's way: ${chosen.found.join(" › ")}`;
  if (chosen.node) {
    const node = view.status.nodes.find((each) => each.node === chosen.node);
    if (!node) return `${chosen.node}: this node`;
    const path = view.graph.nodes.find((each) => each.node === chosen.node)?.path ?? [];
    const exchange = node.key_exchange ? ` · ${node.key_exchange}` : "";
    return path.length ? `${path.join(" › ")} · ${roundTrip(node.rtt_ms)}${exchange}` : `${node.node}: ${node.path.reason ?? node.state}`;
  }
  const journey = view.graph.journeys.find((each) => each.policy === chosen.policy);
  return journey ? `Policy ${journey.policy}: ${journey.stops.join(" › ")}` : "Choose a node or a policy to see its way";
}

function choose(what) {
  Object.assign(chosen, { policy: null, node: null, found: null }, what);
  // The address says what is shown, so that it can be sent to somebody.
  const [kind, name] = ["policy", "node"].map((kind) => [kind, chosen[kind]]).find(([, name]) => name) ?? [];
  window.history.replaceState(null, "", name ? `#${kind}=${encodeURIComponent(name)}` : location.pathname);
  draw();
}

function fromAddress() {
  const [, kind, name] = location.hash.match(/^#(policy|node)=(.+)$/) ?? [];
  if (!kind) return;
  try {
    chosen[kind] = decodeURIComponent(name);
  } catch {
    // What is no encoding is no name either.
  }
}

const pickNode = (node) => choose({ node: chosen.node === node ? null : node });

function drawProblems() {
  const { problems } = view.status;
  const entries = problems.map((problem) =>
    html("li", { class: problem.severity }, html("b", null, `${problem.severity} · ${problem.code}`), problem.text, " ", html("span", { class: "next" }, problem.next_step)));
  const fine = html("li", { class: "fine" }, html("b", null, "All is well"), "nothing is wrong that this node knows of");
  show(find("problems"), JSON.stringify(problems), entries.length ? entries : [fine]);
}

function drawPolicies() {
  const { policies } = view.status;
  const entries = policies.map((policy) => {
    const button = html("button", { type: "button", "aria-pressed": chosen.policy === policy.policy, "data-focus": `policy ${policy.policy}`, on: { click: () => choose({ policy: chosen.policy === policy.policy ? null : policy.policy }) } },
      html("span", { class: "name" }, policy.policy, html("span", { class: `state ${policy.state}` }, policy.state)),
      html("span", { class: "stops" }, policy.path.join(" › ")),
      html("span", { class: "stops" }, `${many(policy.packets, "packet")}${policy.dropped ? `, ${policy.dropped.toLocaleString("en")} dropped` : ""}${policy.mtu ? ` · up to ${policy.mtu} bytes` : ""}${policy.reason ? ` · ${policy.reason}` : ""}`));
    return html("li", null, button);
  });
  const none = html("li", { class: "empty" }, "This node has no policies: packets take the fastest way.");
  show(find("policies"), JSON.stringify([policies, chosen.policy]), entries.length ? entries : [none]);
}

function drawLinks() {
  const links = view.graph.links.filter((link) => link.knowledge === "measured");
  if (!links.some((link) => link.link === chosen.link)) chosen.link = links[0]?.link ?? null;
  const rows = links.map((link) => {
    const samples = history.get(link.link) ?? [];
    const last = samples.at(-1);
    const pick = () => {
      chosen.link = link.link;
      draw();
    };
    return html("tr", { class: link.link === chosen.link ? "chosen" : null },
      html("td", null, html("button", { type: "button", "aria-pressed": link.link === chosen.link, "data-focus": `link ${link.link}`, on: { click: pick } }, link.link)),
      html("td", null, html("span", { class: `state ${link.state}` }, link.state)),
      html("td", { class: "number" }, roundTrip(link.rtt_ms)),
      html("td", { class: "number" }, percent(link.loss_percent)),
      html("td", { class: "number" }, last ? bits(last.received_per_second) : "–"),
      html("td", { class: "number" }, last ? bits(last.sent_per_second) : "–"),
      html("td", null, sparkline(samples.map((sample) => sample.rtt_ms))));
  });
  const empty = html("tr", null, html("td", { colspan: 7, class: "empty" }, "The registry has no node that this one could have a link with."));
  show(find("links"), JSON.stringify([view.number, chosen.link, links]), rows.length ? rows : [empty]);
  drawCharts();
}

function drawCharts() {
  const samples = history.get(chosen.link) ?? [];
  const place = find("charts");
  const columns = Math.max(1, Math.min(3, Math.floor(place.clientWidth / 330)));
  const width = Math.floor((place.clientWidth - 16 * (columns - 1)) / columns);
  if (width < 120 || !samples.length) return show(place, "none", []);
  const times = samples.map((sample) => sample.at_seconds);
  const of = (key) => samples.map((sample) => sample[key]);
  show(place, JSON.stringify([chosen.link, view.number, width]), [
    chart({ title: `${chosen.link}: round trip`, times, width, least: 1, format: roundTrip, series: [{ name: "", color: "s0", values: of("rtt_ms") }] }),
    chart({ title: "Lost", times, width, least: 4, format: percent, series: [{ name: "", color: "s2", values: of("loss_percent") }] }),
    chart({ title: "Throughput", times, width, least: 125, format: bits, series: [{ name: "in", color: "s0", values: of("received_per_second") }, { name: "out", color: "s1", values: of("sent_per_second") }] }),
  ]);
}

function drawDrops() {
  const { drops } = view;
  if (!drops.length) return show(find("drops"), "none", [html("p", { class: "empty" }, "None since the daemon started.")]);
  const head = html("thead", null, html("tr", null, html("th", { scope: "col" }, "Reason"), html("th", { scope: "col", class: "number" }, "Packets"), html("th", { scope: "col" }, "Meaning")));
  const rows = drops.map((drop) => html("tr", null, html("td", null, html("code", null, drop.reason)), html("td", { class: "number" }, drop.packets.toLocaleString("en")), html("td", { class: "words" }, drop.text)));
  show(find("drops"), JSON.stringify(drops), [html("table", null, head, html("tbody", null, ...rows))]);
}

async function explain(event) {
  event.preventDefault();
  const query = new URLSearchParams(new FormData(event.target));
  const place = find("answer");
  try {
    const answer = await fetch(`/api/explain?${query}`, { cache: "no-store" });
    if (!answer.ok) throw new Error(await answer.text());
    const report = await answer.json();
    choose({ found: report.path.length > 1 ? report.path : null });
    place.replaceChildren(...verdict(report));
  } catch (error) {
    place.replaceChildren(html("p", { class: "verdict bad" }, error.message.trim() || "no answer"));
  }
}

function verdict(report) {
  const dropped = report.verdict.dropped;
  const delivery = report.verdict.forwarded;
  const where = delivery?.link ? `sent to ${delivery.link.node}` : { local: "delivered here", outside: "not by the mesh: this host's own routes decide" }[delivery];
  const facts = [["way", report.path.join(" › ")], ["exit", report.exit], ["size", report.size && `at most ${report.size.mtu} bytes`], ["now", report.now], ["segments", report.segments.join(" ")]];
  const rules = report.rules.map((rule) => [rule.matched ? "match" : "skip", `${rule.policy} (${rule.position}): ${rule.reason}`]);
  const rows = [...rules, ...facts.filter(([, text]) => text)];
  return [
    html("p", { class: `verdict ${dropped ? "bad" : "good"}` }, dropped ? `dropped: ${dropped.text}` : where),
    html("dl", { class: "facts" }, ...rows.flatMap(([name, text]) => [html("dt", null, name), html("dd", null, text)])),
  ];
}

find("explain").addEventListener("submit", explain);
find("clear").addEventListener("click", () => choose({}));
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") choose({});
});
new ResizeObserver(draw).observe(find("map"));
fromAddress();
drawLegend();
loop();
