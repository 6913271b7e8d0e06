//! The masquerade table: packets that leave the mesh for the internet here take this host's address.
//!
//! ```text
//! table inet viamesh {
//!     chain postrouting { type nat hook postrouting priority srcnat;
//!         iifname TUN ip daddr <announced network> accept      (one rule each)
//!         iifname TUN oifname != TUN masquerade comment "viamesh …"
//! ```
//! The table is replaced in one transaction. The comment holds a digest of what was asked for, so that a
//! listing tells whether it is still right.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use ipnet::IpNet;
use nftables::batch::Batch;
use nftables::expr::{Expression, Meta, MetaKey, NamedExpression, Payload, PayloadField, Prefix};
use nftables::helper::{self, NftablesError};
use nftables::schema::{Chain, NfListObject, NfObject, Nftables, Rule, Table};
use nftables::stmt::{Match, Operator, Statement};
use nftables::types::{NfChainPolicy, NfChainType, NfFamily, NfHook};

use super::problem::Problem;
use super::state::Masquerade;

const CHAIN: &str = "postrouting";
/// `srcnat`, where NAT of sources belongs.
const PRIORITY: i32 = 100;

/// What is wanted of nftables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) table: String,
    pub(super) tun: String,
    pub(super) masquerade: Option<Masquerade>,
}

/// Makes our table as wanted. Runs `nft` and waits for it: call it where blocking is allowed.
pub(super) fn apply(wanted: &Wanted) -> Result<(), Problem> {
    let present = match find(&wanted.table) {
        // Nothing is wanted, and without the program nothing can be there.
        Err(Problem::NoNftables) if wanted.masquerade.is_none() => return Ok(()),
        Err(problem) => return Err(problem),
        Ok(present) => present,
    };
    match (&wanted.masquerade, present) {
        (None, Present::Nothing) => Ok(()),
        (None, _) => run(deletion(&wanted.table)),
        (Some(masquerade), Present::Table(comment)) if comment == Some(digest(wanted, masquerade)) => Ok(()),
        (Some(masquerade), _) => run(replacement(wanted, masquerade)),
    }
}

enum Present {
    Nothing,
    /// The table is there, with this comment on its masquerade rule.
    Table(Option<String>),
}

fn find(table: &str) -> Result<Present, Problem> {
    let ruleset = match list(&["list", "table", "inet", table]) {
        Ok(ruleset) => ruleset,
        // It says so in words only: the table does not exist.
        Err(NftablesError::NftFailed { stderr, .. }) if stderr.contains("No such file") => {
            return Ok(Present::Nothing);
        }
        Err(error) => return Err(problem(&error)),
    };
    let comment = ruleset.objects.iter().find_map(|object| match object {
        NfObject::ListObject(NfListObject::Rule(rule)) => rule.comment.as_ref().map(ToString::to_string),
        _ => None,
    });
    Ok(Present::Table(comment))
}

fn list(arguments: &[&str]) -> Result<Nftables<'static>, NftablesError> {
    helper::get_current_ruleset_with_args(helper::DEFAULT_NFT, arguments.iter().copied())
}

fn run(batch: Batch<'_>) -> Result<(), Problem> {
    helper::apply_ruleset(&batch.to_nftables()).map_err(|error| problem(&error))
}

fn problem(error: &NftablesError) -> Problem {
    match error {
        NftablesError::NftExecution { inner, .. } if inner.kind() == std::io::ErrorKind::NotFound => {
            Problem::NoNftables
        }
        NftablesError::NftFailed { stderr, .. } => {
            Problem::Nftables { reason: stderr.lines().next().unwrap_or_default().to_owned() }
        }
        other => Problem::Nftables { reason: other.to_string() },
    }
}

fn digest(wanted: &Wanted, masquerade: &Masquerade) -> String {
    let mut hasher = DefaultHasher::new();
    (&wanted.tun, &masquerade.except).hash(&mut hasher);
    format!("viamesh {:016x}", hasher.finish())
}

/// Adding before deleting makes the deletion succeed whether the table was there or not.
fn deletion(table: &str) -> Batch<'_> {
    let mut batch = Batch::new();
    batch.add(NfListObject::Table(named(table)));
    batch.delete(NfListObject::Table(named(table)));
    batch
}

fn replacement<'a>(wanted: &'a Wanted, masquerade: &'a Masquerade) -> Batch<'a> {
    let table = wanted.table.as_str();
    let mut batch = deletion(table);
    batch.add(NfListObject::Table(named(table)));
    batch.add(NfListObject::Chain(Chain {
        family: NfFamily::INet,
        table: table.into(),
        name: CHAIN.into(),
        _type: Some(NfChainType::NAT),
        hook: Some(NfHook::Postrouting),
        prio: Some(PRIORITY),
        policy: Some(NfChainPolicy::Accept),
        ..Chain::default()
    }));
    for network in &masquerade.except {
        let statements = vec![
            interface(MetaKey::Iifname, Operator::EQ, &wanted.tun),
            to(network),
            Statement::Accept(None),
        ];
        batch.add(rule(table, statements, None));
    }
    let statements = vec![
        interface(MetaKey::Iifname, Operator::EQ, &wanted.tun),
        interface(MetaKey::Oifname, Operator::NEQ, &wanted.tun),
        Statement::Masquerade(None),
    ];
    batch.add(rule(table, statements, Some(digest(wanted, masquerade))));
    batch
}

fn named(table: &str) -> Table<'_> {
    Table { family: NfFamily::INet, name: table.into(), handle: None }
}

fn rule<'a>(table: &'a str, statements: Vec<Statement<'a>>, comment: Option<String>) -> NfListObject<'a> {
    NfListObject::Rule(Rule {
        family: NfFamily::INet,
        table: table.into(),
        chain: CHAIN.into(),
        expr: statements.into(),
        comment: comment.map(Into::into),
        ..Rule::default()
    })
}

fn interface(key: MetaKey, op: Operator, name: &str) -> Statement<'_> {
    Statement::Match(Match {
        left: Expression::Named(NamedExpression::Meta(Meta { key })),
        right: Expression::String(name.into()),
        op,
    })
}

fn to(network: &IpNet) -> Statement<'static> {
    let protocol = if network.addr().is_ipv4() { "ip" } else { "ip6" };
    Statement::Match(Match {
        left: Expression::Named(NamedExpression::Payload(Payload::PayloadField(PayloadField {
            protocol: protocol.into(),
            field: "daddr".into(),
        }))),
        right: Expression::Named(NamedExpression::Prefix(Prefix {
            addr: Box::new(Expression::String(network.network().to_string().into())),
            len: u32::from(network.prefix_len()),
        })),
        op: Operator::EQ,
    })
}

/// Forward chains that drop by default and whose table never mentions the TUN. Empty without `nft`.
pub(super) fn dropping_forward_chains(tun: &str) -> BTreeSet<String> {
    let Ok(chains) = list(&["list", "chains"]) else { return BTreeSet::new() };
    let mut dropping = BTreeSet::new();
    for object in chains.objects.iter() {
        let NfObject::ListObject(NfListObject::Chain(chain)) = object else { continue };
        if chain.hook != Some(NfHook::Forward) || chain.policy != Some(NfChainPolicy::Drop) {
            continue;
        }
        let family = match chain.family {
            NfFamily::IP => "ip",
            NfFamily::IP6 => "ip6",
            NfFamily::INet => "inet",
            _ => continue,
        };
        let arguments = ["list", "table", family, chain.table.as_ref()];
        let text = helper::get_current_ruleset_raw(helper::DEFAULT_NFT, arguments).unwrap_or_default();
        if !text.contains(&format!("\"{tun}\"")) {
            dropping.insert(format!("{family} {} {}", chain.table, chain.name));
        }
    }
    dropping
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_told_as_such() {
        let error =
            helper::get_current_ruleset_with_args(Some("/nowhere/nft"), ["list", "ruleset"]).unwrap_err();
        assert_eq!(problem(&error), Problem::NoNftables);
        assert!(Problem::NoNftables.health().next_step.contains("install nftables"));
    }

    #[test]
    fn the_digest_tells_different_wishes_apart() {
        let wanted = |tun: &str| Wanted { table: "viamesh".into(), tun: tun.into(), masquerade: None };
        let nothing = Masquerade::default();
        let network = Masquerade { except: BTreeSet::from(["10.1.0.0/16".parse().unwrap()]) };
        assert_eq!(digest(&wanted("a"), &nothing), digest(&wanted("a"), &nothing));
        assert_ne!(digest(&wanted("a"), &nothing), digest(&wanted("b"), &nothing));
        assert_ne!(digest(&wanted("a"), &nothing), digest(&wanted("a"), &network));
    }
}
