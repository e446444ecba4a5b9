package sluice

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice/sluice-go/sluicepb"
)

const (
	// renewPause is the pause before a renewal that has failed is tried again.
	renewPause = 250 * time.Millisecond
	// renewTryMin is the least time for one try.
	renewTryMin = 500 * time.Millisecond
)

// Held is a lock that is held. It is renewed until Unlock is called, which every holder owes.
type Held struct {
	client *Client
	token  string
	fence  uint64
	ttl    time.Duration
	// ctx ends when the lock is lost or unlocked.
	ctx     context.Context
	end     context.CancelCauseFunc
	renewed chan struct{}
}

// errUnlocked is the cause of the end of a lock that was not lost.
var errUnlocked = errors.New("sluice: unlocked")

func (c *Client) hold(
	grant *sluicepb.AcquireLockResponse, ttl time.Duration, since time.Time,
) (*Held, error) {
	fence, err := parseFencingToken(grant.FencingToken)
	if err != nil {
		return nil, fmt.Errorf("sluice: the fencing token is no number: %w", err)
	}
	held := &Held{client: c, token: grant.Token, fence: fence, ttl: ttl, renewed: make(chan struct{})}
	held.ctx, held.end = context.WithCancelCause(context.Background())
	go held.keep(since)
	return held, nil
}

// Token is the proof of the grant, for writes of documents under the lock and for transactions.
func (h *Held) Token() string { return h.token }

// FencingToken is the number to give to other systems with each write: later holders have larger ones.
func (h *Held) FencingToken() uint64 { return h.fence }

// Lost is closed when the lock is lost or unlocked. It is closed in good time: before the server gives the
// lock to another, as far as the clocks of both run alike.
func (h *Held) Lost() <-chan struct{} { return h.ctx.Done() }

// Unlock ends the renewals and releases the lock. If it was lost before, the error is [ErrLeaseLost].
func (h *Held) Unlock(ctx context.Context) error {
	h.end(errUnlocked)
	<-h.renewed
	err := h.client.releaseLock(ctx, h.token)
	if cause := context.Cause(h.ctx); cause != errUnlocked {
		return cause
	}
	return err
}

// Released says that a transaction has released the lock, so that it is not renewed any more.
func (h *Held) Released() { h.end(errUnlocked) }

// keep renews the lock at each third of its time.
func (h *Held) keep(since time.Time) {
	defer close(h.renewed)
	for sleep(h.ctx, time.Until(since.Add(h.ttl/3))) == nil {
		renewed, err := h.renew(since)
		if err != nil {
			h.end(err)
			return
		}
		since = renewed
	}
}

// renew renews a lock that is held since then. It returns the time from which it is held now.
func (h *Held) renew(since time.Time) (time.Time, error) {
	// A part of the time is left for a holder that has to stop.
	ctx, cancel := context.WithDeadline(h.ctx, since.Add(h.ttl-h.ttl/10))
	defer cancel()
	for {
		asked := time.Now()
		err := h.renewOnce(ctx)
		switch {
		case err == nil:
			return asked, nil
		case codeOf(err) == CodeLeaseLost:
			return asked, err
		case sleep(ctx, renewPause) != nil:
			return asked, lostLock(err)
		}
	}
}

// renewOnce gives a server a part of the time only: one that hangs must not use up all of it.
func (h *Held) renewOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, max(h.ttl/6, renewTryMin))
	defer cancel()
	return h.client.renewLock(ctx, h.token)
}

// lostLock is the error of a lock that could not be renewed in time.
func lostLock(cause error) error {
	return &Error{Code: CodeLeaseLost, Message: "the lock could not be renewed in time", cause: cause}
}
