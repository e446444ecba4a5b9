//! Locks: grants are called l1, l2, ... and claims that wait w1, w2, ... in the order in which they were
//! made.

use sluice_engine::Command;
use sluice_engine::command::LockAcquire;
use sluice_engine::locks::{LockGrant, LockMode, LockTicket, LockToken, LockView};
use sluice_engine::outcome::Reply;

use super::Player;
use super::line::Line;

/// Grants and claims of a script.
#[derive(Default)]
pub(super) struct Named {
    grants: Vec<LockGrant>,
    tickets: Vec<LockTicket>,
}

impl Named {
    fn grant(&mut self, grant: LockGrant) -> String {
        // One that is renewed, or told again, keeps its name.
        match self.grants.iter().position(|known| known.token == grant.token) {
            Some(at) => format!("l{}", at + 1),
            None => name("l", &mut self.grants, grant),
        }
    }

    fn ticket(&mut self, ticket: LockTicket) -> String {
        name("w", &mut self.tickets, ticket)
    }
}

fn name<T: PartialEq>(letter: &str, known: &mut Vec<T>, one: T) -> String {
    let at = known.iter().position(|other| *other == one).unwrap_or_else(|| {
        known.push(one);
        known.len() - 1
    });
    format!("{letter}{}", at + 1)
}

fn numbered<T: Copy>(letter: char, known: &[T], text: &str) -> T {
    let number: usize = text.strip_prefix(letter).and_then(|number| number.parse().ok()).unwrap();
    known[number - 1]
}

impl Player {
    pub(super) fn lock(&mut self, line: &Line<'_>) -> Vec<String> {
        let namespace = self.namespace(line);
        let number = |key| line.number(key).map(|number| number as u32);
        match line.words.as_slice() {
            ["acquire", keys @ ..] => {
                let acquire = self.acquire(line, keys);
                self.run(&Command::LockAcquire(acquire))
            }
            ["renew", grant] => {
                let (token, ttl_ms) = (self.token(grant), number("ttl_ms").unwrap_or(0));
                self.run(&Command::LockRenew { namespace, token, ttl_ms })
            }
            ["release", grant] => {
                let token = self.token(grant);
                self.run(&Command::LockRelease { namespace, token })
            }
            ["wait", ticket] => {
                let ticket = numbered('w', &self.locks.tickets, ticket);
                self.run(&Command::LockWait { ticket, wait_ms: number("wait_ms").unwrap_or(0) })
            }
            ["leave", claim] => {
                let claim = match claim.starts_with('w') {
                    true => numbered('w', &self.locks.tickets, claim),
                    false => numbered('l', &self.locks.grants, claim).claim(),
                };
                self.run(&Command::LockLeave { claim, calls: number("calls").unwrap_or(1) as u16 })
            }
            ["break", key] => self.run(&Command::LockBreak { namespace, key }),
            _ => panic!("{line:?} is no command"),
        }
    }

    pub(super) fn acquire<'a>(&self, line: &Line<'a>, keys: &'a [&'a str]) -> LockAcquire<'a> {
        let number = |key| line.number(key).map(|number| number as u32);
        LockAcquire {
            namespace: self.namespace(line),
            keys,
            owner: line.get("owner").unwrap_or(""),
            mode: mode(line),
            ttl_ms: number("ttl_ms").unwrap_or(30_000),
            wait_ms: number("wait_ms").unwrap_or(0),
            if_absent: line.get("if_absent").is_some(),
            request: [0, line.number("request").unwrap_or(0)],
        }
    }

    /// A grant by its name, or a token as it is printed.
    pub(super) fn token(&self, text: &str) -> LockToken {
        text.parse().unwrap_or_else(|_| numbered('l', &self.locks.grants, text).token)
    }

    /// A grant, which has a name from then on.
    pub(super) fn granted(&mut self, grant: LockGrant) -> String {
        let name = self.locks.grant(grant);
        let (number, until) = (super::print::sequence(grant.token.number), self.time(grant.until_us));
        format!("{name} = {number} until {until}")
    }

    /// What the last command brought about for those who ask for locks.
    pub(super) fn lock_lines(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        match self.driver.out.reply {
            Reply::LockGranted { grant } => lines.push(format!("granted {}", self.granted(grant))),
            Reply::LockWaits { ticket, .. } => lines.push(format!("{} waits", self.locks.ticket(ticket))),
            Reply::LockBroken { holders } => lines.push(format!("{holders} holder(s)")),
            _ => {}
        }
        for notice in self.driver.out.locks.clone() {
            let ticket = self.locks.ticket(notice.ticket);
            lines.push(match notice.grant {
                Some(grant) => format!("{ticket} is granted {}", self.granted(grant)),
                None => format!("{ticket} waits no more"),
            });
        }
        lines
    }

    pub(super) fn show_locks(&self, line: &Line<'_>, limit: usize) -> Vec<String> {
        let prefix = line.get("prefix").unwrap_or("");
        let found = self.driver.engine.locks_after(self.namespace(line), prefix, line.get("after"), limit);
        found.iter().map(|view| format!("{}: {}", view.key, counts(view))).collect()
    }

    pub(super) fn show_lock(&self, line: &Line<'_>, key: &str) -> Vec<String> {
        let Some(view) = self.driver.engine.lock(self.namespace(line), key, 100) else {
            return vec!["free".into()];
        };
        let mut lines = vec![counts(&view)];
        lines.extend(view.holders.iter().map(|holder| {
            let (number, until) = (super::print::sequence(holder.number), self.time(holder.until_us));
            let mode = holder.mode.name();
            format!("{mode} {:?} with {number}, until {until}, keys {}", holder.owner, holder.keys)
        }));
        lines.extend(
            view.waiters.iter().map(|waiter| {
                format!("waits: {} {:?}, keys {}", waiter.mode.name(), waiter.owner, waiter.keys)
            }),
        );
        lines
    }
}

fn counts(view: &LockView) -> String {
    format!("{} holder(s), {} waiting", view.holder_count, view.waiter_count)
}

fn mode(line: &Line<'_>) -> LockMode {
    match (line.get("mode"), line.number("holders")) {
        (Some("shared"), _) => LockMode::Shared,
        (_, Some(holders)) => LockMode::Counting { holders: holders as u16 },
        _ => LockMode::Exclusive,
    }
}
