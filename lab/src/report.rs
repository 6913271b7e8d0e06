//! What the demo measured, as JSON: `{"steps": [{"name": "tunnels", …}, …]}`.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::{Result, Trying};

/// All steps of one run of the demo, in the order in which they ran.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DemoReport {
    /// One entry per step that was measured.
    pub steps: Vec<Step>,
}

/// One step and what was measured in it. Times are milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum Step {
    /// All tunnels came up.
    Tunnels {
        /// From the start of the daemons until the last tunnel was up.
        ms: f64,
    },
    /// Traffic took the relay, because that is faster.
    Relay {
        /// Round trip of the direct link, below the mesh.
        direct_rtt_ms: f64,
        /// Round trip through the mesh.
        relayed_rtt_ms: f64,
    },
    /// The direct link became fast and traffic went back to it.
    Return {
        /// From the change of the link until the direct path was used.
        ms: f64,
    },
    /// One probe took the path that a policy demands.
    Journey {
        /// Cities in the order of the policy, source and exit included.
        expected: Vec<String>,
        /// Cities in the order in which the link emulator saw the probe.
        visited: Vec<String>,
    },
    /// A relay died and traffic recovered.
    Failover {
        /// The longest gap that a stream of probes saw.
        outage_ms: f64,
    },
    /// A bulk transfer over one tunnel on a link without delay.
    Throughput {
        /// Gigabits of payload per second.
        gbps: f64,
    },
}

impl DemoReport {
    /// Writes the report to a file.
    ///
    /// # Errors
    /// When the file can't be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self).map_err(std::io::Error::from);
        text.and_then(|text| std::fs::write(path, text + "\n"))
            .trying(|| format!("writing the report {}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::{DemoReport, Step};

    #[test]
    fn a_step_carries_its_name() {
        let journey = Step::Journey { expected: vec!["a".into()], visited: vec!["a".into()] };
        let report = DemoReport { steps: vec![Step::Tunnels { ms: 80.5 }, journey] };
        let text = serde_json::to_string(&report).unwrap();
        let expected = concat!(
            r#"{"steps":[{"name":"tunnels","ms":80.5},"#,
            r#"{"name":"journey","expected":["a"],"visited":["a"]}]}"#
        );
        assert_eq!(text, expected);
        assert_eq!(serde_json::from_str::<DemoReport>(&text).unwrap(), report);
    }
}
