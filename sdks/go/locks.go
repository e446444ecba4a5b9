package sluice

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/sluice/sluice-go/sluicepb"
)

const (
	lockTTL       = 30 * time.Second
	unlockTimeout = 5 * time.Second
)

// LockOption changes a claim to locks.
type LockOption func(*claim)

type claim struct {
	request sluicepb.AcquireLockRequest
	ttl     time.Duration
	// wait is the longest wait; negative: as long as the context lasts.
	wait time.Duration
}

// LockTTL sets the time after which the lock ends if it is not renewed (default 30 s): after a crash of this
// process others get it after so long.
func LockTTL(d time.Duration) LockOption {
	return func(c *claim) { c.ttl = d }
}

// LockWait sets the longest wait while others hold the lock (default: as long as the context lasts). With 0
// nothing is waited for. After the wait the error is [ErrLockHeld].
func LockWait(d time.Duration) LockOption {
	return func(c *claim) { c.wait = d }
}

// LockOwner names the holder, for those who look.
func LockOwner(name string) LockOption {
	return func(c *claim) { c.request.Owner = given(name) }
}

// LockShared acquires a lock that any number of holders share.
func LockShared() LockOption {
	return func(c *claim) { c.request.Mode = given("shared") }
}

// LockCounting acquires a lock that so many may hold at once.
func LockCounting(holders int) LockOption {
	return func(c *claim) {
		c.request.Mode, c.request.Holders = given("counting"), given(uint32(holders))
	}
}

// LockAlso acquires further keys together with the first one, all or none.
func LockAlso(keys ...string) LockOption {
	return func(c *claim) { c.request.Keys = append(c.request.Keys, keys...) }
}

// Lock acquires the lock of a key, waiting while others hold it. It is renewed in the background until it is
// unlocked or lost.
func (c *Client) Lock(ctx context.Context, key string, opts ...LockOption) (*Held, error) {
	claim := c.newClaim(key, opts)
	began := time.Now()
	grant, err := c.acquire(ctx, claim)
	if err != nil {
		return nil, err
	}
	since := began
	if time.Since(began) >= claim.ttl/3 {
		// Who has waited does not know when the grant began: a renewal tells.
		since = time.Now()
		if err := c.renewLock(ctx, grant.Token); err != nil {
			return nil, err
		}
	}
	return c.hold(grant, claim.ttl, since)
}

func (c *Client) newClaim(key string, opts []LockOption) *claim {
	made := &claim{ttl: lockTTL, wait: -1}
	made.request.Keys = []string{key}
	for _, opt := range opts {
		opt(made)
	}
	made.request.Namespace = c.options.namespace
	made.request.TtlMs = given(uint32(*millis(max(made.ttl, time.Millisecond))))
	made.request.RequestId = given(newKey())
	if len(made.request.Keys) == 1 {
		made.request.Key, made.request.Keys = &key, nil
	}
	return made
}

// acquire waits in pieces: each repeats the claim, which keeps its place in the line.
func (c *Client) acquire(ctx context.Context, claim *claim) (*sluicepb.AcquireLockResponse, error) {
	until := time.Now().Add(claim.wait)
	for {
		wait := pollFor
		if claim.wait >= 0 {
			wait = min(wait, max(time.Until(until), 0))
		}
		isLast := claim.wait >= 0 && wait < pollFor
		grant, err := c.acquireOnce(ctx, claim, wait)
		if err != nil && ctx.Err() != nil {
			go c.withdraw(claim)
		}
		if err == nil || ctx.Err() != nil || isLast || !errors.Is(err, ErrLockHeld) {
			return grant, err
		}
	}
}

func (c *Client) acquireOnce(
	ctx context.Context, claim *claim, wait time.Duration,
) (*sluicepb.AcquireLockResponse, error) {
	claim.request.WaitMs = millis(wait)
	out := &sluicepb.AcquireLockResponse{}
	err := c.call(ctx, sluicepb.Locks_Acquire_FullMethodName, &claim.request, out, repeatable, wait)
	return out, err
}

// withdraw takes a claim back whose caller has gone: it may wait, or have been granted without an answer.
func (c *Client) withdraw(claim *claim) {
	ctx, cancel := context.WithTimeout(context.Background(), unlockTimeout)
	defer cancel()
	if grant, err := c.acquireOnce(ctx, claim, 0); err == nil {
		_ = c.releaseLock(ctx, grant.Token) // Its time ends it otherwise.
	}
}

func (c *Client) renewLock(ctx context.Context, token string) error {
	in := &sluicepb.RenewLockRequest{Namespace: c.options.namespace, Token: &token}
	return c.call(ctx, sluicepb.Locks_Renew_FullMethodName, in, &sluicepb.LockGrant{}, repeatable, 0)
}

func (c *Client) releaseLock(ctx context.Context, token string) error {
	in := &sluicepb.ReleaseLockRequest{Namespace: c.options.namespace, Token: &token}
	out := &sluicepb.ReleaseLockResponse{}
	return c.call(ctx, sluicepb.Locks_Release_FullMethodName, in, out, repeatable, 0)
}

// WithLock calls f while the lock of a key is held, and unlocks it then. The context of f is cancelled, with
// the cause [ErrLeaseLost], when the lock is lost. If it was lost before f has returned, the error says so,
// also when f returned none.
func (c *Client) WithLock(
	ctx context.Context, key string, f func(ctx context.Context, held *Held) error, opts ...LockOption,
) (err error) {
	held, err := c.Lock(ctx, key, opts...)
	if err != nil {
		return err
	}
	defer func() {
		unlocking, cancel := context.WithTimeout(context.WithoutCancel(ctx), unlockTimeout)
		defer cancel()
		err = errors.Join(err, held.Unlock(unlocking))
	}()
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(held.ctx, func() { cancel(context.Cause(held.ctx)) })()
	return f(inner, held)
}

func parseFencingToken(digits string) (uint64, error) {
	return strconv.ParseUint(digits, 10, 64)
}
