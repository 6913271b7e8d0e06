//! Draws the state.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Cell, Paragraph, Row, Table, TableState, Wrap};

use super::state::{List, State, View};
use crate::control::quantity::{bytes, count, or_dash, percent, round_trip, whole_span};
use crate::control::report::{
    LinkSample, LinkStatus, NodeState, NodeStatus, PolicyState, PolicyStatus, StatusReport,
};
use crate::telemetry::Severity;

/// Columns of a sparkline in the overview.
const SPARK: usize = 18;
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A line of a link's page: what it is, its value now, where it is in a sample, and the full height of its sparkline.
type Measure = (&'static str, String, fn(&LinkSample) -> Option<f64>, Option<f64>);

/// Draws everything.
pub(super) fn draw(frame: &mut Frame<'_>, state: &State) {
    let Some(status) = &state.status else { return };
    let problems = u16::try_from(status.problems.len().clamp(1, 5)).unwrap_or(5) + 2;
    let [head, body, below, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(4),
        Constraint::Length(problems),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    headline(frame, head, state, status);
    match &state.view {
        View::Overview => overview(frame, body, state, status),
        View::Node(name) => node(frame, body, state, status.nodes.iter().find(|node| node.node == *name)),
        View::Policy(name) => {
            policy(frame, body, state, status.policies.iter().find(|policy| policy.policy == *name));
        }
    }
    problem_list(frame, below, state, status);
    let keys = match state.view {
        View::Overview => "↑↓ choose   Tab links or policies   Enter open   Space pause   q quit",
        View::Node(_) | View::Policy(_) => "Esc back   Space pause   q quit",
    };
    frame.render_widget(Paragraph::new(keys).style(state.style(Color::DarkGray)), foot);
}

impl State {
    /// A colour, where colours are wanted.
    fn style(&self, colour: Color) -> Style {
        if self.colour { Style::new().fg(colour) } else { Style::new() }
    }

    fn node_style(&self, state: NodeState) -> Style {
        self.style(match state {
            NodeState::Up => Color::Green,
            NodeState::Connecting => Color::Yellow,
            NodeState::Down => Color::Red,
        })
    }

    fn policy_style(&self, state: PolicyState) -> Style {
        self.style(match state {
            PolicyState::Up => Color::Green,
            PolicyState::Degraded => Color::Yellow,
            PolicyState::Down => Color::Red,
        })
    }
}

fn headline(frame: &mut Frame<'_>, area: Rect, state: &State, status: &StatusReport) {
    let up = status.nodes.iter().filter(|node| node.state.is_up()).count();
    let text =
        format!("   up {}   {up} of {} nodes up", whole_span(status.uptime_seconds), status.nodes.len());
    let name = Span::styled(status.node.clone(), Style::new().add_modifier(Modifier::BOLD));
    let note = match (state.silent, state.paused()) {
        (true, _) => Span::styled("   the daemon does not answer", state.style(Color::Red)),
        (false, true) => Span::styled("   paused", state.style(Color::Yellow)),
        (false, false) => Span::raw(""),
    };
    frame.render_widget(Paragraph::new(Line::from(vec![name, Span::raw(text), note])), area);
}

fn overview(frame: &mut Frame<'_>, area: Rect, state: &State, status: &StatusReport) {
    let policies = u16::try_from(status.policies.len()).unwrap_or(u16::MAX).saturating_add(3);
    let below = if status.policies.is_empty() { 0 } else { policies.min(area.height / 2) };
    let [above, below] = Layout::vertical([Constraint::Min(3), Constraint::Length(below)]).areas(area);
    let rows = status.nodes.iter().flat_map(|node| node_rows(state, node));
    let widths = [
        Constraint::Fill(2),
        Constraint::Length(10),
        Constraint::Fill(3),
        Constraint::Length(8),
        Constraint::Length(18),
        Constraint::Length(6),
        Constraint::Length(18),
        Constraint::Length(9),
        Constraint::Length(9),
    ];
    let heads = ["NODE", "STATE", "PATH", "RTT", "", "LOSS", "", "IN/s", "OUT/s"];
    list(frame, above, state, List::Links, Table::new(rows, widths), "Links", &heads);
    let rows = status.policies.iter().map(|policy| {
        let style = state.policy_style(policy.state);
        Row::new([
            Cell::new(policy.policy.clone()),
            Cell::new(policy.state.to_string()).style(style),
            Cell::new(policy.way()),
            Cell::new(or_dash(policy.mtu.map(|mtu| mtu.to_string()))),
            Cell::new(policy.traffic()),
        ])
    });
    let widths = [
        Constraint::Fill(2),
        Constraint::Length(10),
        Constraint::Fill(5),
        Constraint::Length(6),
        Constraint::Fill(2),
    ];
    let heads = ["POLICY", "STATE", "PATH", "MTU", "PACKETS"];
    list(frame, below, state, List::Policies, Table::new(rows, widths), "Policies", &heads);
}

fn list(
    frame: &mut Frame<'_>,
    area: Rect,
    state: &State,
    which: List,
    table: Table<'_>,
    title: &str,
    heads: &[&'static str],
) {
    if area.height == 0 {
        return;
    }
    let heads = Row::new(heads.to_vec()).style(state.style(Color::DarkGray));
    let table = table
        .header(heads)
        .column_spacing(2)
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED))
        .block(Block::new().borders(Borders::TOP).title(format!(" {title} ")));
    let chosen = (state.list == which).then_some(state.cursor);
    frame.render_stateful_widget(table, area, &mut TableState::new().with_selected(chosen));
}

fn node_rows(state: &State, node: &NodeStatus) -> Vec<Row<'static>> {
    let style = state.node_style(node.state);
    let first = |link: Option<&LinkStatus>, row: usize| {
        let samples: Vec<&LinkSample> =
            link.map(|link| state.history.of(&link.name(&node.node)).collect()).unwrap_or_default();
        let last = samples.last();
        let rate = |rate: Option<f64>| or_dash(rate.map(|rate| bytes(whole(rate))));
        let name = if row == 0 { node.node.clone() } else { String::new() };
        Row::new([
            Cell::new(name),
            Cell::new(link.map_or(node.state, |link| link.state).to_string()).style(style),
            Cell::new(if row == 0 { node.path.to_string() } else { String::new() }),
            Cell::new(or_dash(link.and_then(|link| link.rtt_ms).or(node.rtt_ms).map(round_trip))),
            Cell::new(spark(samples.iter().map(|sample| sample.rtt_ms), SPARK, None)),
            Cell::new(or_dash(link.and_then(|link| link.loss_percent).map(percent))),
            Cell::new(spark(samples.iter().map(|sample| sample.loss_percent), SPARK, Some(100.0))),
            Cell::new(rate(last.map(|sample| sample.received_per_second))),
            Cell::new(rate(last.map(|sample| sample.sent_per_second))),
        ])
    };
    if node.links.is_empty() {
        return vec![first(None, 0)];
    }
    node.links.iter().enumerate().map(|(row, link)| first(Some(link), row)).collect()
}

fn node(frame: &mut Frame<'_>, area: Rect, state: &State, node: Option<&NodeStatus>) {
    let Some(node) = node else {
        frame.render_widget(Paragraph::new("the registry has this node no more"), area);
        return;
    };
    let mut lines = vec![
        fact("state", format!("{} for {}", node.state, whole_span(node.since_seconds))),
        fact("path", node.path.to_string()),
        fact("round trip", or_dash(node.rtt_ms.map(round_trip))),
        fact("keys", or_dash(node.key_exchange.clone())),
        fact("address", node.addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join("  ")),
    ];
    let width = usize::from(area.width.saturating_sub(30)).clamp(10, 120);
    for link in &node.links {
        let name = link.name(&node.node);
        let samples: Vec<&LinkSample> = state.history.of(&name).collect();
        let remote = or_dash(link.remote.map(|remote| remote.to_string()));
        let mtu = link.mtu.map_or_else(String::new, |mtu| format!(", up to {mtu} bytes"));
        lines.push(Line::raw(""));
        let style = state.node_style(link.state).add_modifier(Modifier::BOLD);
        lines.push(Line::styled(format!("link {name}   {}   {remote}{mtu}", link.state), style));
        let rows: [Measure; 4] = [
            ("round trip", or_dash(link.rtt_ms.map(round_trip)), |sample| sample.rtt_ms, None),
            ("lost", or_dash(link.loss_percent.map(percent)), |sample| sample.loss_percent, Some(100.0)),
            ("received", bytes(link.received_bytes), |sample| Some(sample.received_per_second), None),
            ("sent", bytes(link.sent_bytes), |sample| Some(sample.sent_per_second), None),
        ];
        for (what, now, value, top) in rows {
            let line = spark(samples.iter().map(|sample| value(sample)), width, top);
            lines.push(Line::raw(format!("  {what:<11} {now:>9}  {line}")));
        }
    }
    page(frame, area, &node.node, lines);
}

fn policy(frame: &mut Frame<'_>, area: Rect, state: &State, policy: Option<&PolicyStatus>) {
    let Some(policy) = policy else {
        frame.render_widget(Paragraph::new("the configuration has this policy no more"), area);
        return;
    };
    let mut lines = vec![
        fact("state", policy.state.to_string()),
        fact("packets", policy.traffic()),
        fact("size", policy.mtu.map_or_else(|| "-".to_owned(), |mtu| format!("at most {mtu} bytes"))),
    ];
    lines.extend(policy.remark.iter().map(|remark| fact("remark", remark.clone())));
    lines.extend(policy.reason.iter().map(|reason| fact("because", reason.clone())));
    lines.push(Line::raw(""));
    for (number, stop) in policy.path.iter().enumerate() {
        let before = policy.path.iter().take(number).filter(|earlier| *earlier == stop).count();
        let again = if before > 0 { format!("   visit {}", before + 1) } else { String::new() };
        let found = state.status.iter().flat_map(|status| &status.nodes).find(|node| node.node == *stop);
        let rtt = found.and_then(|node| node.rtt_ms).map_or_else(String::new, round_trip);
        let style = found.map_or(Style::new(), |node| state.node_style(node.state));
        lines.push(Line::styled(format!("  {number:>2}  {stop:<24} {rtt:>9}{again}"), style));
    }
    page(frame, area, &policy.policy, lines);
}

fn page(frame: &mut Frame<'_>, area: Rect, title: &str, lines: Vec<Line<'_>>) {
    let block = Block::new().borders(Borders::TOP).title(format!(" {title} "));
    frame.render_widget(Paragraph::new(lines).block(block).wrap(Wrap { trim: false }), area);
}

fn fact(name: &str, value: String) -> Line<'static> {
    Line::raw(format!("{name:<11} {value}"))
}

fn problem_list(frame: &mut Frame<'_>, area: Rect, state: &State, status: &StatusReport) {
    let line = |problem: &crate::telemetry::Health| {
        let colour = match problem.severity {
            Severity::Notice => Color::Blue,
            Severity::Warning => Color::Yellow,
            Severity::Error => Color::Red,
        };
        let severity = Span::styled(format!("{:<8} ", problem.severity), state.style(colour));
        Line::from(vec![severity, Span::raw(format!("{}. {}", problem.text, problem.next_step))])
    };
    let lines: Vec<Line<'_>> = if status.problems.is_empty() {
        vec![Line::styled("none", state.style(Color::Green))]
    } else {
        status.problems.iter().map(line).collect()
    };
    let title = match status.problems.len() {
        0 => " Problems ".to_owned(),
        number => format!(" Problems: {} ", count(number as u64)),
    };
    frame.render_widget(Paragraph::new(lines).block(Block::new().borders(Borders::TOP).title(title)), area);
}

/// The last values as blocks, newest on the right; a gap is a space. `top` is the full height, the largest value
/// unless given.
fn spark(values: impl DoubleEndedIterator<Item = Option<f64>>, width: usize, top: Option<f64>) -> String {
    let mut last: Vec<Option<f64>> = values.rev().take(width).collect();
    last.reverse();
    let most = top.unwrap_or_else(|| last.iter().flatten().copied().fold(0.0, f64::max));
    let block = |value: f64| {
        let share = if most > 0.0 { (value / most).clamp(0.0, 1.0) } else { 0.0 };
        let step = usize::try_from(whole(share * 7.0)).unwrap_or(0);
        BLOCKS.get(step).copied().unwrap_or(' ')
    };
    let drawn: String = last.iter().map(|value| value.map_or(' ', block)).collect();
    format!("{drawn:>width$}")
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rates and shares are small and not negative"
)]
fn whole(value: f64) -> u64 {
    value.round() as u64
}
