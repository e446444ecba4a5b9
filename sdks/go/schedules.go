package sluice

import (
	"context"
	"iter"
	"time"

	"github.com/sluice/sluice-go/sluicepb"
)

// Schedule sends a message at set times: those of Cron, or each Every.
type Schedule struct {
	Name string
	// Cron has five fields, six with seconds first, or is a word such as "@daily"; in TimeZone (default UTC).
	Cron, TimeZone string
	// Every is the interval, at least a second.
	Every time.Duration
	// Missed tells what to do about times at which the server was down: "once", "all" or "skip".
	Missed string
	Queue  string
	// Message is what is sent: one without a fixed time, steps and parents. List leaves it empty.
	Message Message
}

// ScheduleState is a schedule as the server has it.
type ScheduleState struct {
	Schedule
	Paused bool
	// NextAt is the next time; zero if there is none.
	NextAt time.Time
	// Fired is how often a message was sent, and Refused how often one was refused.
	Fired, Refused uint64
	// LastID is the id of the latest message, and LastError the code of the latest refusal.
	LastID, LastError string
}

// Schedules are the schedules of a namespace.
type Schedules struct{ client *Client }

// Schedules returns the calls on schedules.
func (c *Client) Schedules() Schedules { return Schedules{c} }

// Put makes a schedule, or replaces the one with this name.
func (s Schedules) Put(ctx context.Context, schedule Schedule) (*ScheduleState, error) {
	message := schedule.Message.proto(s.client.inject(ctx, schedule.Message.Headers))
	in := &sluicepb.PutScheduleRequest{
		Namespace: s.client.options.namespace, Schedule: schedule.Name, Cron: given(schedule.Cron),
		TimeZone: given(schedule.TimeZone), EveryMs: millis(schedule.Every), Missed: given(schedule.Missed),
		Queue: schedule.Queue, Message: message,
	}
	out := &sluicepb.Schedule{}
	err := s.client.call(ctx, sluicepb.Schedules_Put_FullMethodName, in, out, repeatable, 0)
	return scheduleOf(out, err)
}

// Get returns a schedule.
func (s Schedules) Get(ctx context.Context, name string) (*ScheduleState, error) {
	in := &sluicepb.GetScheduleRequest{Namespace: s.client.options.namespace, Schedule: name}
	out := &sluicepb.Schedule{}
	err := s.client.call(ctx, sluicepb.Schedules_Get_FullMethodName, in, out, repeatable, 0)
	return scheduleOf(out, err)
}

// List returns all schedules by name.
func (s Schedules) List(ctx context.Context) iter.Seq2[*ScheduleState, error] {
	return pages(func(after string) ([]*ScheduleState, string, error) {
		in := &sluicepb.ListSchedulesRequest{Namespace: s.client.options.namespace, After: given(after)}
		out := &sluicepb.ListSchedulesResponse{}
		err := s.client.call(ctx, sluicepb.Schedules_List_FullMethodName, in, out, repeatable, 0)
		var page []*ScheduleState
		for _, one := range out.Schedules {
			state, _ := scheduleOf(one, nil)
			page = append(page, state)
		}
		return page, out.Next, err
	})
}

// Delete deletes a schedule.
func (s Schedules) Delete(ctx context.Context, name string) error {
	return s.do(ctx, sluicepb.Schedules_Delete_FullMethodName, name, once)
}

// Pause stops a schedule until it is resumed.
func (s Schedules) Pause(ctx context.Context, name string) error {
	return s.do(ctx, sluicepb.Schedules_Pause_FullMethodName, name, repeatable)
}

// Resume lets a paused schedule go on.
func (s Schedules) Resume(ctx context.Context, name string) error {
	return s.do(ctx, sluicepb.Schedules_Resume_FullMethodName, name, repeatable)
}

// Trigger sends the message of a schedule now, and returns its id.
func (s Schedules) Trigger(ctx context.Context, name string) (string, error) {
	in := &sluicepb.ScheduleRequest{Namespace: s.client.options.namespace, Schedule: name}
	out := &sluicepb.TriggerResponse{}
	err := s.client.call(ctx, sluicepb.Schedules_Trigger_FullMethodName, in, out, once, 0)
	return out.Id, err
}

// do makes a call that has nothing to tell.
func (s Schedules) do(ctx context.Context, method, name string, may safety) error {
	in := &sluicepb.ScheduleRequest{Namespace: s.client.options.namespace, Schedule: name}
	return s.client.call(ctx, method, in, &sluicepb.Schedule{}, may, 0)
}

func scheduleOf(s *sluicepb.Schedule, err error) (*ScheduleState, error) {
	if err != nil {
		return nil, err
	}
	made := &ScheduleState{
		Schedule: Schedule{
			Name: s.Name, Cron: s.Cron, TimeZone: s.TimeZone, Missed: s.Missed, Queue: s.Queue,
			Every: time.Duration(s.GetEveryMs()) * time.Millisecond,
		},
		Paused: s.Paused, NextAt: timeOf(s.GetNextAtMs()), Fired: s.Fired, Refused: s.Refused,
		LastID: s.LastId, LastError: s.LastError,
	}
	if s.Message != nil {
		made.Message = messageOf(s.Message)
	}
	return made, nil
}
