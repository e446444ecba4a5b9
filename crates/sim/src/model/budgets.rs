//! Budgets: what was spent under rates, reckoned in costs, as the documentation tells it. It becomes less as
//! time goes by, and other rules forgive what is beyond the burst; nothing else changes it but deliveries and
//! reports.

use std::collections::BTreeMap;

use sluice_engine::Engine;
use sluice_engine::id::{MessageId, NamespaceId, QueueId};
use sluice_engine::limit::{LimitRules, Rate, Spent};

use super::{Apply, Checked, MessagePlace, ModelState, ensure};

/// A cost of one, in the unit of a budget.
const ONE: u128 = 1_000_000_000;
/// Difference to the engine, which rounds the time of one up to nanoseconds.
const SLACK: u128 = ONE / 100;

/// Cost under a rate that is not made up for, in billionths, and when it was that.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Budget {
    spent: u128,
    at_us: u64,
}

impl Budget {
    fn at(&self, rate: Rate, now_us: u64) -> u128 {
        let made_up = u128::from(now_us - self.at_us) * u128::from(rate.count) * ONE
            / u128::from(rate.period_ms * 1_000);
        self.spent.saturating_sub(made_up)
    }

    /// Checks that something is left for a delivery: its own cost may go beyond that.
    fn allows(&self, rate: Rate, now_us: u64) -> Checked {
        let (spent, burst) = (self.at(rate, now_us), u128::from(rate.burst) * ONE);
        ensure!(
            spent + ONE <= burst + SLACK,
            "a delivery under {rate:?} after {spent} billionths are spent and not made up for"
        );
        Ok(())
    }

    fn spend(&mut self, rate: Option<Rate>, now_us: u64, cost: u32) {
        if let Some(rate) = rate {
            *self = Budget { spent: self.at(rate, now_us) + u128::from(cost) * ONE, at_us: now_us };
        }
    }

    /// Lets another rate follow: what was spent stays so, up to its burst.
    fn follow(&mut self, before: Option<Rate>, rate: Option<Rate>, now_us: u64) {
        let spent = match (before, rate) {
            (Some(before), Some(rate)) => self.at(before, now_us).min(u128::from(rate.burst) * ONE),
            _ => 0,
        };
        *self = Budget { spent, at_us: now_us };
    }

    /// Checks what the engine tells of it; `None`: nothing.
    fn compare(&self, rate: Option<Rate>, shown: Option<Spent>, now_us: u64) -> Checked {
        let Some(rate) = rate else {
            ensure!(shown.is_none(), "{shown:?} is shown without a rate");
            return Ok(());
        };
        let (spent, shown) = (self.at(rate, now_us), shown.map_or(0, |shown| shown.at(now_us)));
        let shown_in_parts = u128::from(shown) * ONE;
        ensure!(
            spent <= shown_in_parts + SLACK && shown_in_parts < spent + ONE + SLACK,
            "{shown} is shown as spent under {rate:?}, and {spent} billionths are"
        );
        Ok(())
    }
}

/// A limit, and what was spent under its rates.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Limited {
    rules: LimitRules,
    overall: Budget,
    by_key: BTreeMap<Vec<u8>, Budget>,
}

impl Limited {
    pub(super) fn new(rules: LimitRules) -> Limited {
        Limited { rules, overall: Budget::default(), by_key: BTreeMap::new() }
    }

    /// Sets other rules; the same ones change nothing.
    pub(super) fn follow(&mut self, rules: LimitRules, now_us: u64) {
        let before = std::mem::replace(&mut self.rules, rules);
        if before == rules {
            return;
        }
        self.overall.follow(before.rate, rules.rate, now_us);
        for budget in self.by_key.values_mut() {
            budget.follow(before.rate_per_key, rules.rate_per_key, now_us);
        }
    }

    fn spend(&mut self, key: &[u8], now_us: u64, cost: u32) {
        self.overall.spend(self.rules.rate, now_us, cost);
        if !key.is_empty() {
            let budget = self.by_key.entry(key.to_vec()).or_default();
            budget.spend(self.rules.rate_per_key, now_us, cost);
        }
    }
}

impl Apply<'_> {
    /// Checks that the limit of its queue allows a message that is being delivered.
    pub(super) fn keeps_limit(&mut self, id: MessageId) -> Checked {
        let message = &self.world.messages[&id];
        let queue = &self.world.queues[&message.queue];
        let named = (queue.namespace, queue.settings.limit.to_string());
        let (key, cost) = (message.keys.limit.clone(), message.keys.cost);
        let follows = |id: &QueueId| {
            let other = &self.world.queues[id];
            other.namespace == named.0 && *other.settings.limit == *named.1
        };
        let leased = self.world.messages.values().filter(|message| {
            matches!(message.place, MessagePlace::Leased { .. }) && follows(&message.queue)
        });
        let in_flight = leased.clone().count();
        let of_key = leased.filter(|other| other.keys.limit == key).count();
        let now_us = self.now_us;
        let Some(limited) = self.world.queue_limits.get_mut(&named) else { return Ok(()) };
        let rules = limited.rules;
        let over = |most: Option<u32>, count: usize| most.is_some_and(|most| count >= most as usize);
        ensure!(!over(rules.in_flight, in_flight), "message {id} is one too many in flight: {in_flight} are");
        if let Some(rate) = rules.rate {
            limited.overall.allows(rate, now_us)?;
        }
        if !key.is_empty() {
            ensure!(
                !over(rules.in_flight_per_key, of_key),
                "message {id} is one too many in flight of its limit key: {of_key} are"
            );
            if let (Some(rate), Some(budget)) = (rules.rate_per_key, limited.by_key.get(&key)) {
                budget.allows(rate, now_us)?;
            }
        }
        limited.spend(&key, now_us, cost.0);
        Ok(())
    }

    /// Counts what the holder of a message reports of its cost.
    pub(super) fn add_cost(&mut self, id: MessageId, cost: u32) {
        let Some(message) = self.world.messages.get(&id).filter(|_| cost > 0) else { return };
        let queue = &self.world.queues[&message.queue];
        let named = (queue.namespace, queue.settings.limit.to_string());
        if let Some(limited) = self.world.queue_limits.get_mut(&named) {
            limited.spend(&message.keys.limit, self.now_us, cost);
        }
    }
}

/// Compares all that was spent with what the engine tells of it.
pub(super) fn compare_budgets(world: &ModelState, engine: &Engine) -> Checked {
    for ((namespace, name), limited) in &world.queue_limits {
        compare_limit(limited, (*namespace, name), world.now_us, engine)
            .map_err(|why| format!("limit {name:?}: {why}"))?;
    }
    Ok(())
}

fn compare_limit(
    limited: &Limited,
    (namespace, name): (NamespaceId, &str),
    now_us: u64,
    engine: &Engine,
) -> Checked {
    let Some(view) = engine.limit(namespace, name) else { return Err("it is lost".into()) };
    ensure!(view.rules == limited.rules, "it has {:?}, not {:?}", view.rules, limited.rules);
    limited.overall.compare(limited.rules.rate, view.spent, now_us)?;
    for (key, budget) in &limited.by_key {
        let shown = engine.limit_key(namespace, name, key).and_then(|view| view.spent);
        budget
            .compare(limited.rules.rate_per_key, shown, now_us)
            .map_err(|why| format!("key {:?}: {why}", String::from_utf8_lossy(key)))?;
    }
    Ok(())
}
