//! Rights that operations ask for, and the roles that have them.

use std::fmt;

/// The right that an operation needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Right {
    /// Nothing: whoever reaches the port may do it.
    Open,
    /// To put messages into queues.
    Send,
    /// To put messages into queues that are held until a person approves them.
    Propose,
    /// To take messages, and to settle and extend what was taken.
    Receive,
    /// To learn what became of a message, and its result: senders and receivers both may.
    Result,
    /// To acquire locks, to renew and release what was granted, and to write documents.
    Coordinate,
    /// To read documents.
    Read,
    /// To look at queues, messages, limits, locks and figures without changing anything.
    Observe,
    /// To change queues, messages that wait, limits, schedules and indexes of documents, and to break locks.
    Operate,
    /// To look after the server: namespaces, tokens, backups, the audit log.
    Admin,
}

impl Right {
    /// All of them.
    pub const ALL: [Right; 10] = [
        Right::Open,
        Right::Send,
        Right::Propose,
        Right::Receive,
        Right::Result,
        Right::Coordinate,
        Right::Read,
        Right::Observe,
        Right::Operate,
        Right::Admin,
    ];

    /// The right as a verb, for errors.
    pub fn verb(self) -> &'static str {
        match self {
            Right::Open => "call",
            Right::Send => "send",
            Right::Propose => "propose messages",
            Right::Receive => "receive",
            Right::Result => "read results",
            Right::Coordinate => "use locks and write documents",
            Right::Read => "read documents",
            Right::Observe => "observe",
            Right::Operate => "operate",
            Right::Admin => "administrate",
        }
    }
}

/// A set of rights, granted together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// May do everything.
    Admin,
    /// Looks at queues and messages, and changes them; neither sends nor receives.
    Operator,
    /// Sends.
    Producer,
    /// Sends what a person has to approve.
    Proposer,
    /// Receives and settles.
    Consumer,
    /// Uses locks and documents.
    Coordinator,
    /// Looks, and changes nothing.
    Observer,
}

impl Role {
    /// All of them.
    pub const ALL: [Role; 7] = [
        Role::Admin,
        Role::Operator,
        Role::Producer,
        Role::Proposer,
        Role::Consumer,
        Role::Coordinator,
        Role::Observer,
    ];

    /// The word used in policy files, tokens and answers.
    pub fn name(self) -> &'static str {
        match self {
            Role::Admin => "admin",
            Role::Operator => "operator",
            Role::Producer => "producer",
            Role::Proposer => "proposer",
            Role::Consumer => "consumer",
            Role::Coordinator => "coordinator",
            Role::Observer => "observer",
        }
    }

    /// The role of that name.
    pub fn from_name(name: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|role| role.name() == name)
    }

    fn rights(self) -> &'static [Right] {
        match self {
            Role::Admin => &Right::ALL,
            Role::Operator => &[Right::Result, Right::Read, Right::Observe, Right::Operate],
            Role::Producer => &[Right::Send, Right::Result],
            Role::Proposer => &[Right::Propose, Right::Result],
            Role::Consumer => &[Right::Receive, Right::Result],
            Role::Coordinator => &[Right::Coordinate, Right::Read],
            Role::Observer => &[Right::Result, Right::Read, Right::Observe],
        }
    }
}

/// Several roles at once.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Roles {
    rights: u16,
    roles: u8,
}

impl Roles {
    /// The set of these roles.
    pub(crate) fn of(roles: &[Role]) -> Roles {
        let bit = |right: &Right| 1u16 << *right as u8;
        roles.iter().fold(Roles::default(), |all, role| Roles {
            rights: all.rights | role.rights().iter().map(bit).sum::<u16>(),
            roles: all.roles | 1 << *role as u8,
        })
    }

    /// True if one of the roles has this right.
    pub(crate) fn allow(self, right: Right) -> bool {
        right == Right::Open || self.rights & 1 << right as u8 != 0
    }

    /// The roles.
    pub(crate) fn list(self) -> impl Iterator<Item = Role> {
        Role::ALL.into_iter().filter(move |role| self.roles & 1 << *role as u8 != 0)
    }
}

impl fmt::Debug for Roles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.list().map(Role::name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_has_its_rights_and_no_others() {
        let rights = |role: Role| {
            let roles = Roles::of(&[role]);
            Right::ALL.into_iter().filter(move |right| roles.allow(*right)).collect::<Vec<_>>()
        };
        assert_eq!(rights(Role::Admin), Right::ALL);
        assert_eq!(
            rights(Role::Operator),
            [Right::Open, Right::Result, Right::Read, Right::Observe, Right::Operate]
        );
        assert_eq!(rights(Role::Producer), [Right::Open, Right::Send, Right::Result]);
        assert_eq!(rights(Role::Proposer), [Right::Open, Right::Propose, Right::Result]);
        assert_eq!(rights(Role::Consumer), [Right::Open, Right::Receive, Right::Result]);
        assert_eq!(rights(Role::Coordinator), [Right::Open, Right::Coordinate, Right::Read]);
        assert_eq!(rights(Role::Observer), [Right::Open, Right::Result, Right::Read, Right::Observe]);
        assert!(Right::ALL.into_iter().skip(1).all(|right| !Roles::default().allow(right)));
    }

    #[test]
    fn roles_add_up() {
        let both = Roles::of(&[Role::Producer, Role::Consumer]);
        assert!(both.allow(Right::Send) && both.allow(Right::Receive) && !both.allow(Right::Observe));
        assert_eq!(both.list().collect::<Vec<_>>(), [Role::Producer, Role::Consumer]);
    }
}
