package sluice

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	firstDelay = 25 * time.Millisecond
	delayMax   = 5 * time.Second
	// leaderDelayMax is the longest delay before the nodes of a cluster are asked anew which of them leads.
	// They agree on a leader within about a second: a longer delay would add to that.
	leaderDelayMax = 100 * time.Millisecond
)

// safety tells whether a call may be made again when it may have taken effect.
type safety bool

const (
	// repeatable calls have no further effect: reads, settlements, sends with an idempotency key.
	repeatable safety = true
	// once is for calls that are repeated only if the first try surely had no effect.
	once safety = false
)

// tries are the tries of one call.
type tries struct {
	// until is the end of the time for repeats; zero: the deadline of the context bounds them.
	until time.Time
	never bool
	// others is the number of other servers, and passed how many were gone to since the last delay.
	others, passed int
	delays         int
}

func (c *Client) newTries(ctx context.Context, wait time.Duration) *tries {
	t := &tries{others: c.servers.others(), never: c.options.retryFor <= 0}
	if _, bounded := ctx.Deadline(); !bounded {
		t.until = time.Now().Add(c.options.retryFor + wait)
	}
	return t
}

// next is the delay before the next try; false: the error is final. Each other server is asked once without a
// delay.
func (t *tries) next(e *Error, may safety, toAnother bool) (time.Duration, bool) {
	if t.never || !worthRepeating(e, may) {
		return 0, false
	}
	if toAnother && t.passed < t.others {
		t.passed++
		return 0, true
	}
	t.passed = 0
	t.delays++
	delay := t.delay(e, toAnother)
	return delay, t.until.IsZero() || time.Now().Add(delay).Before(t.until)
}

// delay is between half and all of a growing delay, and never less than the server has asked for unless
// another one is asked.
func (t *tries) delay(e *Error, toAnother bool) time.Duration {
	most, asked := delayMax, e.RetryAfter
	if toAnother {
		most, asked = leaderDelayMax, 0
	}
	grown := grow(firstDelay, t.delays-1, most)
	if asked > 0 {
		return asked + jitter(grown)
	}
	return jittered(grown)
}

// grow doubles a delay as often as told, up to a bound.
func grow(delay time.Duration, times int, most time.Duration) time.Duration {
	return min(delay<<min(times, 16), most)
}

// jittered is between half and all of a delay.
func jittered(delay time.Duration) time.Duration { return delay/2 + jitter(delay) }

// jitter is up to half of a delay.
func jitter(delay time.Duration) time.Duration {
	return time.Duration(rand.Float64() * float64(delay) / 2)
}

// worthRepeating is true if the same call may succeed later.
func worthRepeating(e *Error, may safety) bool {
	switch e.Code {
	case CodeOverloaded, CodeRateLimited, CodeShuttingDown, CodeNotLeader, CodeNoLeader, CodeInDoubt:
		return true // Nothing was done.
	case CodeUnreachable, CodeOutcomeUnknown, CodeInternal, CodeJournalFailed:
		return may == repeatable
	}
	return false
}

// sleep waits, or until the context ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
