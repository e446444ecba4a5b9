import type { Calls } from "./calls.js";
import type { MessageOptions, Payload } from "./core/message.js";
import type { Schedule } from "./gen/sluice/v1/schedules_pb.js";
import { messageInit } from "./grpc/messages.js";
import { date, whole } from "./grpc/numbers.js";
import { pages } from "./pages.js";

/** When a schedule sends: by a cron expression, or at an interval. */
export type Times =
  | { /** Five fields, six with seconds first, or `@daily`. */ cron: string; timeZone?: string }
  | { /** Interval, 1,000 or more. */ everyMs: number };

/** What a schedule sends, and when. */
export type ScheduleOptions = Times &
  MessageOptions & {
    queue: string;
    payload: Payload;
    /** What to do about times at which the server was down. */
    missed?: "once" | "all" | "skip";
  };

/** A schedule, as the server has it. */
export interface ScheduleState {
  name: string;
  queue: string;
  /** Empty if it has an interval. */
  cron: string;
  timeZone: string;
  everyMs: number | undefined;
  paused: boolean;
  nextAt: Date | undefined;
  lastAt: Date | undefined;
  /** Id of the latest message; empty: none was sent. */
  lastId: string;
  /** Number of times at which a message was sent. */
  fired: number;
}

/** Messages that are sent at set times. */
export class Schedules {
  readonly #calls: Calls;

  constructor(calls: Calls) {
    this.#calls = calls;
  }

  /** Creates a schedule, or replaces it. */
  async put(name: string, options: ScheduleOptions): Promise<ScheduleState> {
    const times =
      "cron" in options
        ? { cron: options.cron, timeZone: options.timeZone }
        : { everyMs: whole(options.everyMs, "everyMs") };
    const { queue, missed } = options;
    const message = messageInit(options, {});
    return state(await this.#calls.schedules.put({ schedule: name, ...times, queue, missed, message }));
  }

  async get(name: string): Promise<ScheduleState> {
    return state(await this.#calls.schedules.get({ schedule: name }));
  }

  /** All schedules, by name. */
  async *list(): AsyncIterable<ScheduleState> {
    for await (const page of pages((after) => this.#calls.schedules.list({ after }))) {
      yield* page.schedules.map(state);
    }
  }

  async delete(name: string): Promise<void> {
    await this.#calls.schedules.delete({ schedule: name });
  }

  async pause(name: string): Promise<ScheduleState> {
    return state(await this.#calls.schedules.pause({ schedule: name }));
  }

  async resume(name: string): Promise<ScheduleState> {
    return state(await this.#calls.schedules.resume({ schedule: name }));
  }

  /** Sends the message of a schedule now; its times are not changed. Returns the message's id. */
  async trigger(name: string): Promise<string> {
    return (await this.#calls.schedules.trigger({ schedule: name })).id;
  }

  /** The next times of a schedule. */
  async next(name: string, count = 10): Promise<Date[]> {
    const { nextAtMs } = await this.#calls.schedules.next({ schedule: name, count });
    return nextAtMs.map((ms) => new Date(Number(ms)));
  }
}

function state(schedule: Schedule): ScheduleState {
  const { name, queue, cron, timeZone, everyMs, paused, lastId } = schedule;
  return {
    name,
    queue,
    cron,
    timeZone,
    everyMs: everyMs === undefined ? undefined : Number(everyMs),
    paused,
    nextAt: date(schedule.nextAtMs),
    lastAt: date(schedule.lastAtMs),
    lastId,
    fired: Number(schedule.fired),
  };
}
