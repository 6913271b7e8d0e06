//! Classes of traffic: what a packet itself does not show, the interface by which it came and its firewall mark.
//!
//! A packet that is read from a TUN carries neither. So each class has a TUN of its own, which a rule of the kernel
//! feeds, and which TUN a packet is read from says its class.

use std::fmt;

/// The class of a packet, by the TUN that it was read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Class(pub u8);

impl Class {
    /// Packets of no class: from the TUN that all others use.
    pub const NONE: Self = Self(0);

    /// The most classes that a node has.
    pub const MOST: usize = 16;

    /// The class as an index, where [`NONE`](Self::NONE) is the first.
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// What makes a class: both must hold, and what is not given always does.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Membership {
    /// The interface by which packets came to this host; `lo` for this host's own.
    pub ingress: Option<String>,
    /// Their firewall mark, all 32 bits of it.
    pub fwmark: Option<u32>,
}

impl Membership {
    /// Whether every packet belongs to it.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.ingress.is_none() && self.fwmark.is_none()
    }

    /// Whether it asks for both, which only packets of two wider classes fulfil.
    #[must_use]
    pub fn is_both(&self) -> bool {
        self.ingress.is_some() && self.fwmark.is_some()
    }

    /// Whether all packets of `narrow` belong to this one.
    #[must_use]
    pub fn includes(&self, narrow: &Self) -> bool {
        (self.ingress.is_none() || self.ingress == narrow.ingress)
            && (self.fwmark.is_none() || self.fwmark == narrow.fwmark)
    }

    /// Those that belong to both; `None` if there are none.
    fn and(&self, other: &Self) -> Option<Self> {
        let ingress = agreed(self.ingress.as_ref(), other.ingress.as_ref())?.cloned();
        let fwmark = agreed(self.fwmark.as_ref(), other.fwmark.as_ref())?.copied();
        Some(Self { ingress, fwmark })
    }
}

fn agreed<'a, T: PartialEq>(one: Option<&'a T>, other: Option<&'a T>) -> Option<Option<&'a T>> {
    match (one, other) {
        (Some(one), Some(other)) if one != other => None,
        _ => Some(one.or(other)),
    }
}

impl fmt::Display for Membership {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.ingress, self.fwmark) {
            (Some(ingress), Some(mark)) => write!(formatter, "by {ingress} with mark {mark:#x}"),
            (Some(ingress), None) => write!(formatter, "by {ingress}"),
            (None, Some(mark)) => write!(formatter, "with mark {mark:#x}"),
            (None, None) => formatter.write_str("anyhow"),
        }
    }
}

/// The classes of a node and the numbers that they have.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClassTable {
    /// By number, from 1; `None` where a class is gone.
    slots: Vec<Option<Membership>>,
}

impl ClassTable {
    /// The table for what policies ask for. Classes that this one knows keep their numbers.
    #[must_use]
    pub fn updated<'a>(&self, asked: impl IntoIterator<Item = &'a Membership>) -> Self {
        let wanted = closure(asked);
        let mut slots = self.slots.clone();
        for slot in &mut slots {
            slot.take_if(|class| !wanted.contains(class));
        }
        for class in wanted {
            if slots.iter().flatten().any(|known| *known == class) {
                continue;
            }
            if let Some(free) = slots.iter_mut().find(|slot| slot.is_none()) {
                *free = Some(class);
            } else if slots.len() < Class::MOST {
                // A checked configuration does not ask for more.
                slots.push(Some(class));
            }
        }
        Self { slots }
    }

    /// All classes.
    pub fn iter(&self) -> impl Iterator<Item = (Class, &Membership)> {
        (1..).map(Class).zip(&self.slots).filter_map(|(number, class)| Some((number, class.as_ref()?)))
    }

    /// Whether the class exists; packets of no class always do.
    #[must_use]
    pub fn contains(&self, class: Class) -> bool {
        class == Class::NONE || self.iter().any(|(number, _)| number == class)
    }

    /// The classes whose packets all belong to `wide`; all of them, and those of no class, if it is everything.
    #[must_use]
    pub fn within(&self, wide: &Membership) -> Vec<Class> {
        self.iter().filter(|(_, class)| wide.includes(class)).map(|(number, _)| number).collect()
    }

    /// The class of a packet: the narrowest that it belongs to.
    #[must_use]
    pub fn class_of(&self, packet: &Membership) -> Class {
        let member = self.iter().filter(|(_, class)| class.includes(packet));
        member.max_by_key(|(_, class)| class.is_both()).map_or(Class::NONE, |(number, _)| number)
    }
}

/// How many classes it takes to tell apart what is asked for.
#[must_use]
pub fn count<'a>(asked: impl IntoIterator<Item = &'a Membership>) -> usize {
    closure(asked).len()
}

/// What is asked for, and what belongs to two of these at once: a packet is read from one TUN only.
fn closure<'a>(asked: impl IntoIterator<Item = &'a Membership>) -> Vec<Membership> {
    let mut classes: Vec<Membership> = Vec::new();
    for class in asked.into_iter().filter(|class| !class.is_everything()) {
        if !classes.contains(class) {
            classes.push(class.clone());
        }
    }
    let wide: Vec<Membership> = classes.iter().filter(|class| !class.is_both()).cloned().collect();
    for (place, one) in wide.iter().enumerate() {
        let both = wide.iter().skip(place + 1).filter_map(|other| one.and(other));
        for class in both.collect::<Vec<_>>() {
            if !classes.contains(&class) {
                classes.push(class);
            }
        }
    }
    classes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(ingress: &str, fwmark: u32) -> Membership {
        Membership {
            ingress: (!ingress.is_empty()).then(|| ingress.to_owned()),
            fwmark: (fwmark != 0).then_some(fwmark),
        }
    }

    #[test]
    fn packets_of_two_classes_have_a_class_of_their_own() {
        let asked = [class("lan0", 0), class("", 0x20), class("", 0), class("lan1", 0), class("lan0", 0)];
        let table = ClassTable::default().updated(&asked);
        let all: Vec<String> = table.iter().map(|(number, class)| format!("{} {class}", number.0)).collect();
        assert_eq!(
            all,
            [
                "1 by lan0",
                "2 with mark 0x20",
                "3 by lan1",
                "4 by lan0 with mark 0x20",
                "5 by lan1 with mark 0x20"
            ]
        );
        assert_eq!(count(&asked), 5);
        assert_eq!(table.class_of(&class("lan0", 0)), Class(1));
        assert_eq!(table.class_of(&class("lan0", 0x30)), Class(1));
        assert_eq!(table.class_of(&class("lan0", 0x20)), Class(4));
        assert_eq!(table.class_of(&class("eth0", 0x20)), Class(2));
        assert_eq!(table.class_of(&class("eth0", 0)), Class::NONE);
        assert_eq!(table.within(&class("lan0", 0)), [Class(1), Class(4)]);
        assert_eq!(table.within(&class("", 0x20)), [Class(2), Class(4), Class(5)]);
        assert_eq!(table.within(&class("lan1", 0x20)), [Class(5)]);
    }

    #[test]
    fn numbers_stay_and_are_given_again_only_when_free() {
        let first = ClassTable::default().updated(&[class("a", 0), class("b", 0), class("c", 0)]);
        let second = first.updated(&[class("c", 0), class("a", 0), class("d", 0), class("e", 0)]);
        let numbers = |table: &ClassTable, name: &str| table.class_of(&class(name, 0));
        assert_eq!(["a", "c", "d", "e"].map(|name| numbers(&second, name).0), [1, 3, 2, 4]);
        assert_eq!(numbers(&second, "b"), Class::NONE);
        assert!(first.contains(Class(2)) && first.contains(Class::NONE) && !first.contains(Class(4)));
        let many: Vec<_> = (1..100).map(|mark| class("", mark)).collect();
        assert_eq!(ClassTable::default().updated(&many).iter().count(), Class::MOST);
    }
}
