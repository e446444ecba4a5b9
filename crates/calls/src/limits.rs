//! Limits of a namespace: list, show, set, delete.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sluice_engine::limit::{IN_FLIGHT_MAX, LimitRules, RATE_COUNT_MAX, RATE_PERIOD_MS_MAX, Rate, Spent};
use sluice_engine::query::{LimitKeyView, LimitView};

use crate::call::{Body, Done, How, Unary};
use crate::error::CallError;
use crate::fault::{Fault, Read};
use crate::permit::Permit;
use crate::value::{Nothing, PageSize, Shown, Whole, Within, cursor, cut_page, given, page_size};

// Zero is left to the engine's check, which says what would be right.
type InFlight = Within<0, { IN_FLIGHT_MAX as u64 }>;
type RateCount = Within<1, { RATE_COUNT_MAX as u64 }>;
type RatePeriod = Within<1, RATE_PERIOD_MS_MAX>;

/// Settings of a limit; absent fields do not limit.
#[derive(Clone, Default, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "LimitSettings")]
#[schemars(example = settings_example())]
pub struct Put {
    /// Leased messages of all queues that follow the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    in_flight: Option<InFlight>,
    /// Leased messages of each limit key.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    in_flight_per_key: Option<InFlight>,
    /// Deliveries of all queues that follow the limit, each counted as its cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<RateSettings>,
    /// Deliveries of each limit key, each counted as its cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    rate_per_key: Option<RateSettings>,
}

fn settings_example() -> Value {
    json!({"in_flight": 100, "rate_per_key": {"count": 50, "period_ms": 1_000, "burst": 10}})
}

/// A number of deliveries in a period, or of what they cost together.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Rate")]
pub struct RateSettings {
    /// Deliveries in each period, each counted as its cost.
    #[schemars(required, range(min = 1))]
    count: Option<RateCount>,
    /// The period, in milliseconds.
    #[schemars(required, range(min = 1))]
    period_ms: Option<RatePeriod>,
    /// Deliveries at once after a time without any, each counted as its cost; default: `count`.
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    burst: Option<RateCount>,
}

impl RateSettings {
    /// The rate that stands in the field `name`.
    fn checked(self, name: &'static str) -> Read<Rate> {
        let missing = |field| Fault::missing(field, "a rate is so many deliveries in a period").inside(name);
        let count = self.count.ok_or_else(|| missing("count"))?.get() as u32;
        let period_ms = self.period_ms.ok_or_else(|| missing("period_ms"))?.get();
        Ok(Rate { count, period_ms, burst: self.burst.map_or(count, |burst| burst.get() as u32) })
    }
}

impl From<Rate> for RateSettings {
    fn from(rate: Rate) -> RateSettings {
        RateSettings {
            count: Some(Within::clamped(rate.count.into())),
            period_ms: Some(Within::clamped(rate.period_ms)),
            burst: Some(Within::clamped(rate.burst.into())),
        }
    }
}

impl TryFrom<Put> for LimitRules {
    type Error = Box<Fault>;

    fn try_from(put: Put) -> Read<LimitRules> {
        let count = |count: InFlight| count.get() as u32;
        Ok(LimitRules {
            in_flight: put.in_flight.map(count),
            in_flight_per_key: put.in_flight_per_key.map(count),
            rate: put.rate.map(|rate| rate.checked("rate")).transpose()?,
            rate_per_key: put.rate_per_key.map(|rate| rate.checked("rate_per_key")).transpose()?,
        })
    }
}

impl From<&LimitRules> for Put {
    fn from(rules: &LimitRules) -> Put {
        let count = |count: u32| Within::clamped(count.into());
        Put {
            in_flight: rules.in_flight.map(count),
            in_flight_per_key: rules.in_flight_per_key.map(count),
            rate: rules.rate.map(RateSettings::from),
            rate_per_key: rules.rate_per_key.map(RateSettings::from),
        }
    }
}

/// A limit, and how much of it is used.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(example = example())]
pub struct Limit {
    /// Its name.
    name: String,
    /// Its settings.
    settings: Put,
    /// Names of the queues that follow it.
    queues: Vec<String>,
    /// Leased messages.
    in_flight: u64,
    /// Messages that it holds back.
    waiting: u64,
    /// When its rate lets the next message begin, in milliseconds since the Unix epoch; absent when it does
    /// now.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_at_ms: Option<u64>,
    /// Cost under `rate` that is not made up for yet: the burst is its limit, and what is more is debt;
    /// absent when nothing is, or there is no such rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    spent: Option<u64>,
    /// A page of its keys, when one limit is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    keys: Option<Vec<LimitKey>>,
    /// Cursor of the next page of keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

fn example() -> Value {
    json!({
        "name": "shop", "settings": settings_example(), "queues": ["mail"], "in_flight": 100, "waiting": 12,
    })
}

/// A limit key, and how much of it is used.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LimitKey {
    /// The key, as it was sent.
    key: String,
    /// Leased messages.
    in_flight: u64,
    /// Messages that it holds back.
    waiting: u64,
    /// When its rate lets the next message begin, in milliseconds since the Unix epoch; absent when it does
    /// now.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_at_ms: Option<u64>,
    /// Cost under `rate_per_key` that is not made up for yet: the burst is its limit, and what is more is
    /// debt; absent when nothing is, or there is no such rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    spent: Option<u64>,
}

impl Whole for Limit {
    const NAME: &'static str = "LimitShown";
    const FIELD: &'static str = "keys";

    fn example() -> Value {
        json!([{"key": "ann", "in_flight": 50, "waiting": 12, "spent": 10}])
    }
}

impl Limit {
    /// A limit as it is at this time, in milliseconds since the Unix epoch.
    fn at(now_ms: u64, limit: &LimitView) -> Limit {
        Limit {
            name: limit.name.to_string(),
            settings: Put::from(&limit.rules),
            queues: limit.queues.iter().map(ToString::to_string).collect(),
            in_flight: limit.in_flight,
            waiting: limit.waiting,
            next_at_ms: next_at_ms(now_ms, limit.next_at_us),
            spent: spent_now(now_ms, limit.spent),
            keys: None,
            next: None,
        }
    }
}

impl LimitKey {
    /// A key as it is at this time, in milliseconds since the Unix epoch.
    fn at(now_ms: u64, key: &LimitKeyView) -> LimitKey {
        LimitKey {
            key: String::from_utf8_lossy(&key.key).into_owned(),
            in_flight: key.in_flight,
            waiting: key.waiting,
            next_at_ms: next_at_ms(now_ms, key.next_at_us),
            spent: spent_now(now_ms, key.spent),
        }
    }
}

/// Rounded up: at that millisecond it is allowed. The engine tells of its latest record; while nothing
/// happens, the time may have come since.
fn next_at_ms(now_ms: u64, next_at_us: Option<u64>) -> Option<u64> {
    next_at_us.map(|at_us| at_us.div_ceil(1_000)).filter(|at_ms| *at_ms > now_ms)
}

/// The cost that is not made up for by now, if that is any.
fn spent_now(now_ms: u64, spent: Option<Spent>) -> Option<u64> {
    spent.map(|spent| spent.at(now_ms * 1_000)).filter(|spent| *spent > 0)
}

/// The limits of a namespace, by name.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "LimitListRequest")]
pub struct List {
    /// `next` of the page before.
    after: Option<String>,
    /// Most limits of the page.
    limit: Option<PageSize>,
}

/// A page of limits.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "LimitList")]
#[schemars(example = json!({"limits": [example()]}))]
pub struct Limits {
    /// By name.
    limits: Vec<Limit>,
    /// Name after which the next page begins; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl Unary for List {
    type Answer = Limits;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Limits>, CallError> {
        let size = page_size(self.limit);
        let after = given(self.after.as_deref());
        let mut limits = permit.node().limits_of(permit.namespace_id()?, after, size + 1).await?;
        let next = cut_page(&mut limits, size, |limit| &limit.name);
        let now_ms = permit.node().clock().now_ms();
        Ok(Limits { limits: limits.iter().map(|limit| Limit::at(now_ms, limit)).collect(), next }.into())
    }
}

/// A limit with a page of its keys, or with one of them.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "LimitShowRequest")]
pub struct Show {
    /// The one key to show.
    key: Option<String>,
    /// True: only keys that hold messages back are listed; default false.
    waiting: bool,
    /// `next` of the page before.
    cursor: Option<String>,
    /// Most keys of the page.
    limit: Option<PageSize>,
}

impl Unary for Show {
    type Answer = Shown<Limit>;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Shown<Limit>>, CallError> {
        let cursor = cursor(self.cursor.as_deref())?;
        let (node, namespace, name) = (permit.node(), permit.namespace_id()?, permit.name());
        let limit = node.limit(namespace, name).await?;
        let (keys, next) = match given(self.key.as_deref()) {
            Some(key) => (node.limit_key(namespace, name, key).await?.into_iter().collect(), None),
            None => {
                let most = page_size(self.limit);
                let page = node.limit_keys(namespace, name, self.waiting, cursor, most).await?;
                (page.items, page.next)
            }
        };
        let now_ms = node.clock().now_ms();
        let keys: Vec<_> = keys.iter().map(|key| LimitKey::at(now_ms, key)).collect();
        let next = next.map(|next| next.to_string());
        Ok(Shown(Limit { keys: Some(keys), next, ..Limit::at(now_ms, &limit) }).into())
    }
}

impl Unary for Put {
    type Answer = Limit;
    const BODY: Body = Body::Small;
    const HOW: &'static [How] = &[How::Created, How::Done];

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Limit>, CallError> {
        let rules = LimitRules::try_from(self)?;
        let (limit, created) = permit.node().limit_set(permit.namespace_id()?, permit.name(), rules).await?;
        Ok(Done::made(Limit::at(permit.node().clock().now_ms(), &limit), created))
    }
}

/// A limit to delete: one that no queue follows.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "LimitDeleteRequest")]
pub struct Delete {}

impl Unary for Delete {
    type Answer = Nothing;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Nothing>, CallError> {
        permit.node().limit_delete(permit.namespace_id()?, permit.name()).await?;
        Ok(Nothing {}.into())
    }
}
