//! What a scrape holds, and that the dashboard and the alerts ask for nothing that is not in it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::metrics::{Dialect, Observation, render};
use super::{Health, Severity, Tally};
use crate::control::report::tests::{link, status_of};
use crate::control::report::{AssociationsReport, FORMAT, PolicyState, PolicyStatus};
use crate::node::NodeEvent;

fn observation() -> Observation {
    let mut status =
        status_of(vec![("bravo", vec![link(Some(23.1), 1_000, 2_000)]), ("echo", vec![link(None, 0, 0)])]);
    status.policies.push(PolicyStatus {
        policy: "inspected \"by\" bravo".to_owned(),
        state: PolicyState::Down,
        path: vec!["alpha".to_owned(), "bravo".to_owned()],
        remark: None,
        reason: Some("echo does not answer".to_owned()),
        mtu: None,
        packets: 7,
        dropped: 3,
    });
    let problem = Health {
        code: "peer/no-answer".to_owned(),
        subject: "echo".to_owned(),
        severity: Severity::Warning,
        text: "echo cannot be reached".to_owned(),
        next_step: String::new(),
    };
    status.problems = vec![problem.clone(), problem];
    status.drops = BTreeMap::from([("replayed".to_owned(), 2)]);
    let mut tally = Tally::default();
    tally.note(&NodeEvent::Rekeyed { peer: "bravo".to_owned(), kind: "child" });
    let peer = "echo".to_owned();
    tally.note(&NodeEvent::DialFailed { peer, what: "no answer to IKE_SA_INIT".to_owned(), tries: 1 });
    tally.delay(Duration::from_millis(3));
    let associations = AssociationsReport { format: FORMAT, associations: Vec::new() };
    Observation { status, associations, counters: tally.report() }
}

#[test]
fn a_scrape_shows_what_the_reports_say() {
    insta::assert_snapshot!(render(observation(), Dialect::OpenMetrics).unwrap());
}

#[test]
fn older_collectors_get_what_they_understand() {
    assert_eq!(
        Dialect::accepted("application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.1"),
        Dialect::OpenMetrics
    );
    assert_eq!(Dialect::accepted("*/*"), Dialect::Prometheus);
    let text = render(observation(), Dialect::Prometheus).unwrap();
    assert!(text.contains("# TYPE viamesh_route_changes_total counter"), "{text}");
    assert!(text.contains("_bucket{le=\"+Inf\"} 1") && !text.contains("# EOF"), "{text}");
}

/// Names of series in a scrape, as they are asked for in queries.
fn names(scrape: &str) -> BTreeSet<String> {
    let types = scrape.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    types
        .flat_map(|(name, kind)| match kind {
            "counter" => vec![format!("{name}_total")],
            "histogram" => ["_bucket", "_sum", "_count"].map(|end| format!("{name}{end}")).to_vec(),
            _ => vec![name.to_owned()],
        })
        .collect()
}

#[test]
fn dashboard_and_alerts_ask_only_for_series_that_exist() {
    let names = names(&render(observation(), Dialect::OpenMetrics).unwrap());
    let files = [
        ("dashboard", include_str!("../../deploy/grafana/viamesh.json")),
        ("alerts", include_str!("../../deploy/prometheus/alerts.yaml")),
    ];
    for (file, text) in files {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let asked: BTreeSet<&str> = words.filter(|word| word.starts_with("viamesh_")).collect();
        assert!(asked.len() > 4, "{file} asks for {asked:?}");
        for name in asked {
            assert!(names.contains(name), "the {file} asks for {name}, which no scrape has");
        }
    }
}
