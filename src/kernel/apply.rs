//! From what the kernel has to what the node wants.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use ipnet::IpNet;

use super::Kernel;
use super::addresses;
use super::device::{self, Device};
use super::masquerade::{self, Wanted};
use super::netlink;
use super::problem::Problem;
use super::routes::{self, RouteChange, Scope, Tuns};
use super::rules::{self, KernelRules};
use super::setting;
use super::state::{Family, KernelState, RouteKey, RouteTarget, Rule, Tun};

/// Problems of single routes that are told one by one; more are counted.
const ROUTE_PROBLEMS: usize = 5;

/// What the kernel has of us, and what of others concerns us.
#[derive(Debug)]
pub(super) struct Observed {
    device: Option<Device>,
    /// The TUNs of classes that were found.
    class_devices: BTreeMap<u8, Device>,
    addresses: BTreeSet<IpNet>,
    /// `None` for a route with our protocol number in a form that we never make.
    routes: BTreeMap<RouteKey, Option<RouteTarget>>,
    rules: KernelRules,
    shared_tables: BTreeSet<u32>,
    /// What `nft` was last asked for with success.
    masquerade: Option<Wanted>,
    /// Forward chains that drop by default; read once, when forwarding is wanted.
    dropping_chains: Option<BTreeSet<String>>,
}

impl Kernel {
    pub(super) async fn apply_difference(&mut self, wanted: &KernelState) -> Vec<Problem> {
        if self.tun.as_ref() != Some(&wanted.tun.name) {
            self.tun = Some(wanted.tun.name.clone());
            self.observed = None;
        }
        let mut observed = match self.observed.take() {
            Some(observed) => observed,
            None => match self.observe(&wanted.class_tuns).await {
                Ok(observed) => observed,
                Err(error) => return vec![Problem::refused("to show what it has", &error)],
            },
        };
        let mut problems = Vec::new();
        let ipv6 = self.apply_device(wanted, &mut observed, &mut problems).await;
        self.apply_class_devices(wanted, ipv6, &mut observed, &mut problems).await;
        let mut incomplete = self.apply_routes(wanted, ipv6, &mut observed, &mut problems).await;
        incomplete |= self.apply_rules(wanted, ipv6, &mut observed, &mut problems).await;
        self.host.apply(wanted.forward_ipv4, wanted.forward_ipv6 && ipv6, &wanted.tun.name, &mut problems);
        self.apply_masquerade(wanted, &mut observed, &mut problems).await;
        problems.extend(self.concerns(&observed));
        let devices = observed.device.is_some() && observed.class_devices.len() == wanted.class_tuns.len();
        if !incomplete && devices {
            self.observed = Some(observed);
        }
        without_repeats(problems)
    }

    async fn observe(&self, class_tuns: &BTreeMap<u8, Tun>) -> io::Result<Observed> {
        let name = self.tun.as_deref().unwrap_or_default();
        let device = if name.is_empty() { None } else { device::find(&self.netlink, name).await? };
        let index = device.as_ref().map(|device| device.index);
        let addresses = match index {
            Some(index) => self.device_addresses(index).await?,
            None => BTreeSet::new(),
        };
        let mut class_devices = BTreeMap::new();
        for (class, tun) in class_tuns {
            if let Some(found) = device::find(&self.netlink, &tun.name).await? {
                class_devices.insert(*class, found);
            }
        }
        let ours = routes::dump(&self.netlink, Scope::Protocol(self.claim.protocol)).await?;
        let tuns = tuns(device.as_ref(), &class_devices);
        Ok(Observed {
            device,
            class_devices,
            addresses,
            routes: ours.into_iter().map(|route| (route.key, route.target(&tuns))).collect(),
            rules: rules::dump(&self.netlink, &self.claim).await?,
            shared_tables: routes::shared_tables(&self.netlink, &self.claim).await?,
            masquerade: None,
            dropping_chains: None,
        })
    }

    async fn device_addresses(&self, index: u32) -> io::Result<BTreeSet<IpNet>> {
        let all = addresses::dump(&self.netlink).await?;
        let own = all.into_iter().filter(|entry| entry.index == index);
        Ok(own.filter_map(|entry| IpNet::new(entry.address, entry.network.prefix_len()).ok()).collect())
    }

    /// The TUN's properties and addresses. Returns whether IPv6 works on it.
    async fn apply_device(
        &self,
        wanted: &KernelState,
        observed: &mut Observed,
        problems: &mut Vec<Problem>,
    ) -> bool {
        let name = &wanted.tun.name;
        let Some(device) = &mut observed.device else {
            problems.push(Problem::NoTun { name: name.clone() });
            return setting::has_ipv6("default");
        };
        device::configure(&self.netlink, device, &wanted.tun, problems).await;
        let ipv6 = setting::has_ipv6(name);
        if !ipv6 {
            problems.push(Problem::NoIpv6);
        }
        device::apply_settings(name, ipv6, problems);
        let addresses = wanted.tun.addresses.iter().map(|address| IpNet::from(*address));
        let addresses = addresses.filter(|address| ipv6 || address.addr().is_ipv4()).collect();
        observed.addresses =
            addresses::apply(&self.netlink, device.index, &observed.addresses, &addresses, problems).await;
        ipv6
    }

    /// The TUNs of classes: those that came since are looked up, those that went are forgotten.
    async fn apply_class_devices(
        &self,
        wanted: &KernelState,
        ipv6: bool,
        observed: &mut Observed,
        problems: &mut Vec<Problem>,
    ) {
        observed.class_devices.retain(|class, _| wanted.class_tuns.contains_key(class));
        for (class, tun) in &wanted.class_tuns {
            if !observed.class_devices.contains_key(class) {
                match device::find(&self.netlink, &tun.name).await {
                    Ok(Some(found)) => {
                        observed.class_devices.insert(*class, found);
                    }
                    Ok(None) => problems.push(Problem::NoTun { name: tun.name.clone() }),
                    Err(error) => problems.push(Problem::refused(format!("to show {}", tun.name), &error)),
                }
            }
            if let Some(device) = observed.class_devices.get_mut(class) {
                device::configure(&self.netlink, device, tun, problems).await;
                device::apply_settings(&tun.name, ipv6, problems);
            }
        }
    }

    /// Returns whether something could not be done.
    async fn apply_routes(
        &self,
        wanted: &KernelState,
        ipv6: bool,
        observed: &mut Observed,
        problems: &mut Vec<Problem>,
    ) -> bool {
        let tuns = tuns(observed.device.as_ref(), &observed.class_devices);
        let possible = |key: &RouteKey, target: &RouteTarget| {
            (ipv6 || Family::of(&key.destination) == Family::V4)
                && target.tun().is_none_or(|tun| tuns.contains_key(&tun))
        };
        let routes = wanted.routes.iter().filter(|(key, target)| possible(key, target));
        let routes = routes.map(|(key, target)| (*key, *target)).collect();
        let changes = routes::difference(&self.claim, &observed.routes, &routes, &tuns);
        self.change_routes(changes, &mut observed.routes, problems).await
    }

    async fn change_routes(
        &self,
        changes: Vec<RouteChange>,
        observed: &mut BTreeMap<RouteKey, Option<RouteTarget>>,
        problems: &mut Vec<Problem>,
    ) -> bool {
        let (effects, requests): (Vec<_>, Vec<_>) =
            changes.into_iter().map(|change| ((change.key, change.target), change.request)).unzip();
        let results = self.netlink.execute_all(requests).await;
        let mut failures = Vec::new();
        for ((key, target), result) in effects.into_iter().zip(results) {
            match (result, target) {
                (Ok(()), Some(target)) => {
                    observed.insert(key, Some(target));
                }
                (Ok(()), None) => {
                    observed.remove(&key);
                }
                (Err(error), None) if netlink::is_missing(&error) => {
                    observed.remove(&key);
                }
                (Err(error), _) => {
                    let what = format!("route {} in table {}", key.destination, key.table);
                    failures.push(Problem::refused(what, &error));
                }
            }
        }
        let incomplete = !failures.is_empty();
        let more = failures.len().saturating_sub(ROUTE_PROBLEMS);
        failures.truncate(ROUTE_PROBLEMS);
        problems.extend(failures);
        if more > 0 {
            problems.push(Problem::Refused {
                what: format!("{more} more routes"),
                reason: "see above".to_owned(),
            });
        }
        incomplete
    }

    /// Returns whether something could not be done.
    async fn apply_rules(
        &self,
        wanted: &KernelState,
        ipv6: bool,
        observed: &mut Observed,
        problems: &mut Vec<Problem>,
    ) -> bool {
        let rules: BTreeSet<Rule> =
            wanted.rules.iter().filter(|rule| ipv6 || rule.family == Family::V4).cloned().collect();
        let before = std::mem::take(&mut observed.rules);
        let mut failures = Vec::new();
        match rules::apply(&self.netlink, &self.claim, before, &rules, &mut failures).await {
            Ok(after) => observed.rules = after,
            Err(error) => failures.push(Problem::refused("to show its rules", &error)),
        }
        let incomplete = !failures.is_empty();
        problems.append(&mut failures);
        incomplete
    }

    async fn apply_masquerade(
        &self,
        state: &KernelState,
        observed: &mut Observed,
        problems: &mut Vec<Problem>,
    ) {
        let wanted = Wanted {
            table: self.claim.nft_table.clone(),
            tun: state.tun.name.clone(),
            masquerade: state.masquerade.clone(),
        };
        if observed.masquerade.as_ref() != Some(&wanted) {
            let request = wanted.clone();
            match blocking(move || masquerade::apply(&request)).await {
                Ok(()) => observed.masquerade = Some(wanted.clone()),
                Err(problem) => problems.push(problem),
            }
        }
        if observed.dropping_chains.is_none() && (state.forward_ipv4 || state.forward_ipv6) {
            let tun = wanted.tun;
            observed.dropping_chains =
                Some(blocking(move || masquerade::dropping_forward_chains(&tun)).await);
        }
    }

    /// What others do that concerns us.
    fn concerns(&self, observed: &Observed) -> Vec<Problem> {
        let mut concerns: Vec<Problem> =
            observed.shared_tables.iter().map(|table| Problem::SharedTable { table: *table }).collect();
        concerns.extend(observed.rules.late_local(&self.claim));
        let chains = observed.dropping_chains.iter().flatten();
        concerns.extend(chains.map(|chain| Problem::ForwardDropped { chain: chain.clone() }));
        concerns
    }

    /// Rules go first, so that no packet is sent into a table that is being emptied.
    pub(super) async fn remove_everything(&mut self) -> Vec<Problem> {
        self.observed = None;
        let mut problems = Vec::new();
        match self.observe(&BTreeMap::new()).await {
            Ok(observed) => self.remove(observed, &mut problems).await,
            Err(error) => problems.push(Problem::refused("to show what it has", &error)),
        }
        let wanted = Wanted {
            table: self.claim.nft_table.clone(),
            tun: self.tun.clone().unwrap_or_default(),
            masquerade: None,
        };
        problems.extend(blocking(move || masquerade::apply(&wanted)).await.err());
        self.host.restore(&mut problems);
        without_repeats(problems)
    }

    async fn remove(&self, mut observed: Observed, problems: &mut Vec<Problem>) {
        let nothing = BTreeSet::new();
        let mut failures = Vec::new();
        if let Err(error) =
            rules::apply(&self.netlink, &self.claim, observed.rules, &nothing, &mut failures).await
        {
            failures.push(Problem::refused("to show its rules", &error));
        }
        problems.append(&mut failures);
        let changes = routes::difference(&self.claim, &observed.routes, &BTreeMap::new(), &Tuns::new());
        self.change_routes(changes, &mut observed.routes, problems).await;
        if let Some(device) = observed.device {
            addresses::apply(&self.netlink, device.index, &observed.addresses, &BTreeSet::new(), problems)
                .await;
        }
    }
}

fn tuns(device: Option<&Device>, classes: &BTreeMap<u8, Device>) -> Tuns {
    let classes = classes.iter().map(|(class, device)| (*class, device.index));
    device.map(|device| (0, device.index)).into_iter().chain(classes).collect()
}

/// Runs `work` where it may wait for another program.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // Only at the end of the runtime, when nobody waits any more.
            Err(_) => std::future::pending().await,
        },
    }
}

fn without_repeats(problems: Vec<Problem>) -> Vec<Problem> {
    let mut seen = BTreeSet::new();
    problems.into_iter().filter(|problem| seen.insert(problem.clone())).collect()
}
