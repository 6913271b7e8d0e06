//! What passes between the mesh and the kernel's tables.

use super::values;
use crate::config::code::Code;
use crate::config::diagnostic::{Diagnostic, Diagnostics};
use crate::config::node_file::NodeFile;
use crate::config::record::Field;
use crate::config::redistribution::{Redistribution, RouteExport, RouteFilter, RouteImport};
use crate::config::settings::KernelSettings;
use crate::config::source::Spanned;
use ipnet::IpNet;

/// Priority of exported routes unless the file gives one.
const EXPORT_METRIC: u32 = 1024;

/// Tables behind the first that are this node's own: that of the policies, and those of up to sixteen classes.
const OWN_TABLES: u32 = 17;

/// Fills in defaults and refuses tables that cannot work.
pub(super) fn resolve(
    file: &NodeFile,
    kernel: &KernelSettings,
    diagnostics: &mut Diagnostics,
) -> Redistribution {
    let Some(section) = file.redistribute.as_ref().map(|field| &field.value) else {
        return Redistribution::default();
    };
    let mut found =
        Redistribution { connected: values(section.connected.as_ref()), ..Redistribution::default() };
    for entry in section.import.iter().flat_map(|field| &field.value).map(|entry| &entry.value) {
        let Some(table) = table(entry.table.as_ref(), kernel, diagnostics) else { continue };
        let protocols = entry
            .protocols
            .iter()
            .flat_map(|field| &field.value.0)
            .map(|protocol| protocol.value.0)
            .collect();
        let metric = entry.metric.as_ref().map_or(0, |metric| metric.value);
        if let Some(field) = entry.metric.as_ref().filter(|metric| metric.value == u16::MAX) {
            let title = "65535 is the metric of what cannot be reached";
            diagnostics.push(Diagnostic::at(field.span, Code::InvalidValue, title).label("65534 at most"));
        }
        let filter = filter(entry.prefixes.as_ref(), entry.except.as_ref());
        found.import.push(RouteImport { table, protocols, filter, metric });
    }
    for entry in section.export.iter().flat_map(|field| &field.value).map(|entry| &entry.value) {
        let Some(table) = table(entry.table.as_ref(), kernel, diagnostics) else { continue };
        let metric = entry.metric.as_ref().map_or(EXPORT_METRIC, |metric| metric.value);
        let filter = filter(entry.prefixes.as_ref(), entry.except.as_ref());
        found.export.push(RouteExport { table, filter, metric });
    }
    found
}

/// A table that is not ours: what we read from those would be our own.
fn table(field: Option<&Field<u32>>, kernel: &KernelSettings, diagnostics: &mut Diagnostics) -> Option<u32> {
    let field = field?;
    let problem = match field.value {
        table if (kernel.table..=kernel.table.saturating_add(OWN_TABLES)).contains(&table) => {
            format!("table {table} is this node's own")
        }
        table @ (0 | 255) => format!("table {table} belongs to the kernel"),
        table => return Some(table),
    };
    let diagnostic = Diagnostic::at(field.span, Code::InvalidValue, problem).label("not possible here");
    diagnostics.push(diagnostic.help("name the table that the routing daemon uses; 254 is `main`"));
    None
}

fn filter(
    prefixes: Option<&Field<Vec<Spanned<IpNet>>>>,
    except: Option<&Field<Vec<Spanned<IpNet>>>>,
) -> RouteFilter {
    RouteFilter { prefixes: values(prefixes), except: values(except) }
}
