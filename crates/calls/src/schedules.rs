//! Schedules: list, show, show when they fire next, pause, trigger, delete.

mod message;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sluice_engine::MessageId;
use sluice_engine::command::SendItem;
use sluice_engine::limits::DELAY_MS_MAX;
pub use sluice_node::schedule::{EVERY_MS_MIN, MISSED, Missed, ScheduleSpec, When};
use sluice_node::{SCHEDULE_NEXT_MAX, Schedule as Stored};

use crate::access::Right;
use crate::call::{Body, Done, How, Unary};
use crate::error::CallError;
use crate::hot::message::Message;
use crate::hot::{AT_MS_EXAMPLE, ID_EXAMPLE};
use crate::messages::room_for;
use crate::permit::Permit;
use crate::value::{Nothing, PageSize, Shown, Whole, Within, Word, Words, cut_page, given, page_size};
pub use message::{ScheduledMessage, Unique};

/// Default number of instants in an answer.
const NEXT_DEFAULT: u64 = 10;

impl Words for Missed {
    const WORDS: &[(Missed, &'static str)] =
        &[(Missed::Once, MISSED[0]), (Missed::All, MISSED[1]), (Missed::Skip, MISSED[2])];
    const NAMES: &'static [&'static str] = &MISSED;
}

/// A schedule: when it fires, and what came of it so far.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(example = example())]
pub struct Schedule {
    /// Its name.
    name: String,
    /// The times at which it fires: five fields, six with seconds first, or a word such as `@daily`.
    #[serde(skip_serializing_if = "Option::is_none")]
    cron: Option<String>,
    /// Time zone of `cron`, by its name in the IANA database; default `UTC`.
    #[serde(skip_serializing_if = "Option::is_none")]
    time_zone: Option<String>,
    /// The interval at which it fires, in milliseconds, when it has no `cron`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = EVERY_MS_MIN, max = DELAY_MS_MAX))]
    every_ms: Option<u64>,
    /// Treatment of times at which the server was down: `once` sends one message for all of them, `all` one
    /// for each of the latest 1,000, `skip` none.
    #[serde(skip_serializing_if = "Option::is_none")]
    missed: Option<Word<Missed>>,
    /// Name of the queue that it sends to.
    queue: String,
    /// True when it is paused: its times pass without a message.
    paused: bool,
    /// When it fires next, in milliseconds since the Unix epoch; absent when it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_at_ms: Option<u64>,
    /// Times at which it sent its message.
    fired: u64,
    /// Times at which a message with its unique key was there already.
    duplicates: u64,
    /// Times at which its message was refused.
    refused: u64,
    /// The latest of all these times, in milliseconds since the Unix epoch; absent before the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_at_ms: Option<u64>,
    /// Id of the latest message that it sent; absent before the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_id: Option<String>,
    /// Code of the error with which its latest message was refused; absent when it was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<String>,
    /// When it was created, in milliseconds since the Unix epoch.
    created_at_ms: u64,
    /// Its message, when one schedule is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<ScheduledMessage>,
}

fn example() -> Value {
    json!({
        "name": "nightly", "cron": "0 3 * * *", "time_zone": "Europe/Berlin", "missed": "once",
        "queue": "reports", "paused": false, "next_at_ms": AT_MS_EXAMPLE, "fired": 12, "duplicates": 0,
        "refused": 0, "created_at_ms": AT_MS_EXAMPLE - 9_000,
    })
}

impl Whole for Schedule {
    const NAME: &'static str = "ScheduleShown";
    const FIELD: &'static str = "message";

    fn example() -> Value {
        json!({"payload": "nightly"})
    }
}

impl From<&Stored> for Schedule {
    fn from(Stored { view, spec }: &Stored) -> Schedule {
        let (cron, time_zone, every_ms) = match spec.as_ref().map(|spec| &spec.when) {
            Some(When::Cron { expression, time_zone }) => {
                (Some(expression.clone()), Some(time_zone.clone()), None)
            }
            Some(When::Every { every_ms }) => (None, None, Some(*every_ms)),
            None => (None, None, None),
        };
        Schedule {
            name: view.name.clone(),
            cron,
            time_zone,
            every_ms,
            missed: spec.as_ref().map(|spec| Word(spec.missed)),
            queue: view.queue.clone(),
            paused: view.paused,
            next_at_ms: view.next_at_us.map(|at_us| at_us / 1_000),
            fired: view.fired,
            duplicates: view.duplicates,
            refused: view.refused,
            last_at_ms: view.last_at_us.map(|at_us| at_us / 1_000),
            last_id: view.last_id.as_ref().map(MessageId::to_string),
            last_error: view.last_error.clone(),
            created_at_ms: view.created_at_us / 1_000,
            message: None,
        }
    }
}

/// The schedules of a namespace, by name.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "ScheduleListRequest")]
pub struct List {
    /// `next` of the page before.
    after: Option<String>,
    /// Most schedules of the page.
    limit: Option<PageSize>,
}

/// A page of schedules.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "ScheduleList")]
#[schemars(example = json!({"schedules": [example()]}))]
pub struct Schedules {
    /// By name.
    schedules: Vec<Schedule>,
    /// Name after which the next page begins; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl Unary for List {
    type Answer = Schedules;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Schedules>, CallError> {
        let (size, after) = (page_size(self.limit), given(self.after.as_deref()));
        let mut schedules = permit.node().schedules(permit.namespace_id()?, after, size + 1).await?;
        let next = cut_page(&mut schedules, size, |schedule| &schedule.view.name);
        Ok(Schedules { schedules: schedules.iter().map(Schedule::from).collect(), next }.into())
    }
}

/// A schedule to show with its message.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "ScheduleShowRequest")]
pub struct Show {}

impl Unary for Show {
    type Answer = Shown<Schedule>;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Shown<Schedule>>, CallError> {
        room_for(permit, 1)?;
        let found = permit.node().schedule_message(permit.namespace_id()?, permit.name());
        let (schedule, blob) = found.await?;
        let message = ScheduledMessage::new(&schedule.view.message, &blob);
        Ok(Shown(Schedule { message: Some(message), ..Schedule::from(&schedule) }).into())
    }
}

/// A schedule to delete. Messages that it has sent stay.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "ScheduleDeleteRequest")]
pub struct Delete {}

impl Unary for Delete {
    type Answer = Nothing;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Nothing>, CallError> {
        permit.node().schedule_delete(permit.namespace_id()?, permit.name()).await?;
        Ok(Nothing {}.into())
    }
}

/// The next times of a schedule.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "ScheduleNextRequest")]
pub struct Next {
    /// Number of instants; default 10.
    count: Option<Within<1, { SCHEDULE_NEXT_MAX as u64 }>>,
}

/// The times at which a schedule fires next.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "ScheduleNext")]
#[schemars(example = json!({"next_at_ms": [AT_MS_EXAMPLE]}))]
pub struct Times {
    /// In milliseconds since the Unix epoch; none while it is paused.
    next_at_ms: Vec<u64>,
}

impl Unary for Next {
    type Answer = Times;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Times>, CallError> {
        let count = self.count.map_or(NEXT_DEFAULT, Within::get) as usize;
        let times = permit.node().schedule_next(permit.namespace_id()?, permit.name(), count).await?;
        Ok(Times { next_at_ms: times.into_iter().map(|at_us| at_us / 1_000).collect() }.into())
    }
}

/// A schedule to pause or to resume.
// `PAUSED`: whether it is paused then.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Pause<const PAUSED: bool> {}

impl<const PAUSED: bool> Unary for Pause<PAUSED> {
    type Answer = Schedule;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Schedule>, CallError> {
        let pause = permit.node().schedule_pause(permit.namespace_id()?, permit.name(), PAUSED);
        Ok(Schedule::from(&pause.await?).into())
    }
}

/// A schedule whose message is sent now. Its times stay as they are.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "ScheduleTriggerRequest")]
pub struct Trigger {}

/// The message that a schedule sent.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "ScheduleSent")]
#[schemars(example = json!({"id": ID_EXAMPLE, "duplicate": false}))]
pub struct Sent {
    /// Id of the message.
    id: String,
    /// True when a message with the same unique key was there already; then `id` is its id.
    duplicate: bool,
}

impl Unary for Trigger {
    type Answer = Sent;
    const BODY: Body = Body::None;
    const HOW: &'static [How] = &[How::Created];

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Sent>, CallError> {
        allow_message(permit).await?;
        let (id, duplicate) = permit.node().schedule_trigger(permit.namespace_id()?, permit.name()).await?;
        Ok(Done::made(Sent { id: id.to_string(), duplicate }, true))
    }
}

/// A schedule to create, or to replace: give `cron` or `every_ms`. Fronts decode it by hand.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SchedulePut", example = json!({
    "cron": "0 3 * * *", "time_zone": "Europe/Berlin", "queue": "reports", "message": {"payload": "{}"},
}))]
pub struct Put {
    /// The times at which it fires: five fields, six with seconds first, or a word such as `@daily`.
    pub cron: Option<String>,
    /// Time zone of `cron`, by its name in the IANA database; default `UTC`.
    pub time_zone: Option<String>,
    /// The interval at which it fires, in milliseconds.
    pub every_ms: Option<Within<EVERY_MS_MIN, DELAY_MS_MAX>>,
    /// Treatment of times at which the server was down: `once` sends one message for all of them, `all` one
    /// for each of the latest 1,000, `skip` none; default `once`.
    pub missed: Option<Word<Missed>>,
    /// Name of the queue that it sends to.
    pub queue: String,
    /// The message that it sends.
    pub message: Message,
}

/// Creates a schedule, or replaces it. Its request carries a message, which fronts decode by hand.
///
/// # Errors
/// Those of the node; `forbidden` for a queue that the caller may not send to.
pub async fn put(
    permit: &Permit<'_>,
    queue: &str,
    spec: &ScheduleSpec,
    item: &SendItem<'_>,
) -> Result<Done<Schedule>, CallError> {
    permit.allow_queue(Right::Send, queue)?;
    permit.onward([item])?.cleared().await?;
    let namespace = permit.namespace_id()?;
    let (schedule, created) = permit.node().schedule_put(namespace, permit.name(), queue, spec, item).await?;
    Ok(Done::made(Schedule::from(&schedule), created))
}

/// Checks the right to send to the schedule's queue, and to the queue that gets the result of its message.
async fn allow_message(permit: &Permit<'_>) -> Result<(), CallError> {
    if permit.may_everywhere(Right::Send) {
        return Ok(());
    }
    let schedule = permit.node().schedule(permit.namespace_id()?, permit.name()).await?;
    permit.allow_queue(Right::Send, &schedule.view.queue)?;
    let (_, options) = schedule.view.message.fields();
    match options.reply_to {
        "" => Ok(()),
        reply_to => permit.allow_queue(Right::Send, reply_to),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::to_value;
    use sluice_engine::NamespaceId;

    use super::*;
    use crate::operation::Operation;
    use crate::testing::Open;

    #[tokio::test]
    async fn a_schedule_is_paused_resumed_and_triggered() {
        let server = Open::new();
        let spec = ScheduleSpec { when: When::Every { every_ms: 60_000 }, missed: Missed::Skip };
        let item = SendItem { payload: b"x", ..SendItem::default() };
        server.node().schedule_put(NamespaceId::DEFAULT, "tick", "q", &spec, &item).await.unwrap();
        let pause = server.permit(Operation::SchedulePause, "tick");
        let paused = to_value(Pause::<true> {}.run(&pause).await.unwrap().answer).unwrap();
        assert_eq!((&paused["every_ms"], &paused["missed"]), (&60_000.into(), &"skip".into()));
        assert!(
            paused["paused"] == true && paused.get("cron").is_none() && paused.get("next_at_ms").is_none()
        );
        let next = server.permit(Operation::ScheduleNext, "tick");
        assert!(Next::default().run(&next).await.unwrap().answer.next_at_ms.is_empty());
        let resume = server.permit(Operation::ScheduleResume, "tick");
        assert!(!Pause::<false> {}.run(&resume).await.unwrap().answer.paused);
        let times = Next::default().run(&next).await.unwrap().answer.next_at_ms;
        assert!(times.len() == 10 && times.windows(2).all(|two| two[1] - two[0] == 60_000), "{times:?}");

        let trigger = server.permit(Operation::ScheduleTrigger, "tick");
        let sent = Trigger {}.run(&trigger).await.unwrap();
        assert!(sent.created() && !sent.answer.duplicate && sent.answer.id.parse::<MessageId>().is_ok());
        let list = server.permit(Operation::ScheduleList, "");
        let listed = List::default().run(&list).await.unwrap().answer;
        assert_eq!((listed.schedules.len(), listed.schedules[0].queue.as_str(), listed.next), (1, "q", None));
        let delete = server.permit(Operation::ScheduleDelete, "tick");
        Delete {}.run(&delete).await.unwrap();
        assert_eq!(Trigger {}.run(&trigger).await.unwrap_err().code(), "schedule_not_found");
    }
}
