//! The sections with numbers: kernel, timers, cost, workers.

use std::time::Duration;

use super::endpoints::report_foreign_mark;
use super::not_used;
use crate::config::code::Code;
use crate::config::diagnostic::{Diagnostic, Diagnostics};
use crate::config::node_file::{CostSection, KernelSection, NodeFile, TimersSection};
use crate::config::record::Field;
use crate::config::settings::{
    CostMap, Family, KernelSettings, LocalEndpoint, TUNNEL_MTU_IP4, TUNNEL_MTU_IP6, Timers,
};
use crate::config::source::Spanned;

/// All of them.
pub(super) struct Sections {
    pub(super) kernel: KernelSettings,
    pub(super) timers: Timers,
    pub(super) cost: CostMap,
    pub(super) workers: u16,
}

/// The largest packet that fits the tunnel in the worst case that this node's endpoints allow.
pub(super) fn tunnel_mtu(endpoints: &[Spanned<LocalEndpoint>]) -> u16 {
    let ip6 = endpoints.iter().any(|endpoint| endpoint.value.family == Family::Ip6);
    if ip6 { TUNNEL_MTU_IP6 } else { TUNNEL_MTU_IP4 }
}

/// Fills in defaults and reports values that cannot work.
pub(super) fn resolve(
    file: &NodeFile,
    endpoints: &[Spanned<LocalEndpoint>],
    diagnostics: &mut Diagnostics,
) -> Sections {
    if let Some(experimental) = &file.experimental {
        diagnostics.push(not_used(experimental, "experimental", "accepted for ranet's sake"));
    }
    let kernel = file.kernel.as_ref().map(|field| &field.value);
    let timers = file.timers.as_ref().map(|field| &field.value);
    let cost = file.cost.as_ref().map(|field| &field.value);
    let workers = file.workers.as_ref();
    if let Some(workers) = workers.filter(|workers| !(1..=256).contains(&workers.value)) {
        diagnostics.push(out_of_range(workers, "a node has 1 to 256 workers"));
    }
    Sections {
        kernel: self::kernel(kernel, tunnel_mtu(endpoints), diagnostics),
        timers: self::timers(timers, diagnostics),
        cost: self::cost(cost, diagnostics),
        workers: workers.map_or(1, |workers| workers.value),
    }
}

/// Name of the TUN.
pub(super) fn tun_name(file: &NodeFile) -> String {
    let tun = file.kernel.as_ref().and_then(|section| section.value.tun.as_ref());
    tun.map_or_else(|| KernelSettings::default().tun, |field| field.value.clone())
}

fn out_of_range<T>(field: &Field<T>, rule: &str) -> Diagnostic {
    Diagnostic::at(field.span, Code::InvalidValue, rule).label("not possible")
}

fn value<T: Clone>(field: &Option<Field<T>>, default: T) -> T {
    field.as_ref().map_or(default, |field| field.value.clone())
}

fn kernel(section: Option<&KernelSection>, tunnel_mtu: u16, diagnostics: &mut Diagnostics) -> KernelSettings {
    let default = KernelSettings { tun_mtu: tunnel_mtu, ..KernelSettings::default() };
    let Some(section) = section else { return default };
    if let Some(mark) = &section.fwmark {
        report_foreign_mark(mark, diagnostics);
    }
    let bad_name = |name: &str| {
        name.len() > 15
            || name.contains(|c: char| c == '/' || c.is_whitespace() || c == ':')
            || name == "."
            || name == ".."
    };
    if let Some(tun) = section.tun.as_ref().filter(|tun| bad_name(&tun.value)) {
        diagnostics
            .push(out_of_range(tun, "a device name has at most 15 characters and no space, slash or colon"));
    }
    if let Some(mtu) = section.tun_mtu.as_ref().filter(|mtu| mtu.value < 1280) {
        diagnostics.push(out_of_range(mtu, "IPv6 needs an MTU of at least 1280"));
    }
    if let Some(table) = section.table.as_ref().filter(|table| [0, 253, 254, 255].contains(&table.value)) {
        diagnostics.push(out_of_range(table, "tables 0 and 253 to 255 belong to the kernel"));
    }
    let settings = KernelSettings {
        tun: value(&section.tun, default.tun),
        tun_mtu: value(&section.tun_mtu, default.tun_mtu),
        table: value(&section.table, default.table),
        underlay_table: value(&section.underlay_table, default.underlay_table),
        underlay_priority: value(&section.underlay_priority, default.underlay_priority),
        overlay_priority: value(&section.overlay_priority, default.overlay_priority),
        fwmark: section.fwmark.as_ref().map_or(default.fwmark, |mark| mark.value.0),
        rtproto: value(&section.rtproto, default.rtproto),
    };
    let priorities = section.overlay_priority.as_ref().or(section.underlay_priority.as_ref());
    if let Some(field) = priorities.filter(|_| settings.underlay_priority >= settings.overlay_priority) {
        diagnostics.push(out_of_range(field, "`underlay_priority` must be lower than `overlay_priority`"));
    }
    settings
}

/// Packets or octets that keys must be good for: replacing them takes messages of its own.
const FEWEST_BEFORE_REKEY: u64 = 1000;

fn timers(section: Option<&TimersSection>, diagnostics: &mut Diagnostics) -> Timers {
    let default = Timers::default();
    let Some(section) = section else { return default };
    let second = Duration::from_secs(1);
    // Babel writes intervals as hundredths of a second in 16 bits (RFC 8966 §4.6.5).
    let longest = Duration::from_secs(655);
    for field in [&section.hello, &section.update, &section.fast_hello].into_iter().flatten() {
        if field.value > longest {
            diagnostics.push(out_of_range(field, "Babel's intervals are at most 655 seconds"));
        }
    }
    for field in [&section.child_rekey_packets, &section.child_rekey_bytes].into_iter().flatten() {
        if field.value < FEWEST_BEFORE_REKEY {
            diagnostics.push(out_of_range(field, "keys must carry at least 1000 before they are replaced"));
        }
    }
    let mut at_least = |field: &Option<Field<Duration>>, least: Duration, default: Duration| {
        if let Some(field) = field.as_ref().filter(|field| field.value < least) {
            diagnostics.push(out_of_range(field, &format!("this timer needs at least {least:?}")));
        }
        value(field, default)
    };
    let tenth = Duration::from_millis(100);
    let centi = Duration::from_millis(10);
    Timers {
        child_rekey: at_least(&section.child_rekey, second, default.child_rekey),
        child_rekey_packets: value(&section.child_rekey_packets, default.child_rekey_packets),
        child_rekey_bytes: value(&section.child_rekey_bytes, default.child_rekey_bytes),
        ike_rekey: at_least(&section.ike_rekey, second, default.ike_rekey),
        liveness: at_least(&section.liveness, tenth, default.liveness),
        retransmit: at_least(&section.retransmit, centi, default.retransmit),
        redial: at_least(&section.redial, centi, default.redial),
        hello: at_least(&section.hello, centi, default.hello),
        update: at_least(&section.update, centi, default.update),
        fast_hello: at_least(&section.fast_hello, centi, default.fast_hello),
    }
}

fn cost(section: Option<&CostSection>, diagnostics: &mut Diagnostics) -> CostMap {
    let default = CostMap::default();
    let Some(section) = section else { return default };
    let cost = CostMap {
        rxcost: value(&section.rxcost, default.rxcost),
        rtt_min: value(&section.rtt_min, default.rtt_min),
        rtt_max: value(&section.rtt_max, default.rtt_max),
        rtt_cost: value(&section.rtt_cost, default.rtt_cost),
        loss_cost: value(&section.loss_cost, default.loss_cost),
    };
    if let Some(rxcost) = section.rxcost.as_ref().filter(|rxcost| rxcost.value == 0) {
        diagnostics.push(out_of_range(rxcost, "a link that costs nothing lets routes go in circles"));
    }
    let limits = section.rtt_max.as_ref().or(section.rtt_min.as_ref());
    if let Some(field) = limits.filter(|_| cost.rtt_min >= cost.rtt_max) {
        diagnostics.push(out_of_range(field, "`rtt_min` must be lower than `rtt_max`"));
    }
    cost
}
