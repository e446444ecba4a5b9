package coordination

import "slices"

// ends says whether a grant can be over by its time, and lets it be so.
func (now *moment) ends(at int) bool {
	if !now.isOver(now.grants[at].end) {
		return false
	}
	now.grants = slices.Delete(now.grants, at, at+1)
	return true
}

// own returns the grant that an earlier request of this call may have got; -1: none.
func (now *moment) own(operation *Operation) int {
	if !now.record.Repeatable || now.record.Transaction {
		return -1
	}
	at := now.of(now.record.Name)
	if at < 0 || !now.told {
		return at
	}
	held := now.grants[at]
	isOther := held.token != "" && held.token != operation.Token
	if isOther || held.fencing != 0 && held.fencing != operation.Fencing {
		return -1 // it is over, and this is another one
	}
	return at
}

// admitsClaim says whether a claim can be granted: whoever is in the way is over by then.
func (now *moment) admitsClaim(operation *Operation) bool {
	if now.own(operation) >= 0 {
		return true
	}
	for at := len(now.grants) - 1; at >= 0; at-- {
		held := now.grants[at]
		inWay := !held.shared || !operation.Shared || held.owner == now.record.Name
		if inWay && held.isOf(operation.Keys) && !now.ends(at) {
			return false
		}
	}
	return true
}

func (held grant) isOf(keys []int) bool {
	return slices.ContainsFunc(keys, func(key int) bool { return held.keys[key] })
}

// claims grants. A grant of which nobody was told may end at any time: the server gives it back when it finds
// the caller gone.
func (now *moment) claims(operation *Operation, highest uint64) bool {
	if at := now.own(operation); at >= 0 {
		if now.told {
			held := &now.grants[at]
			held.token, held.end = operation.Token, max(held.end, now.lasts(operation))
			return learn(&held.fencing, held.after, operation.Fencing)
		}
		return true
	}
	granted := grant{
		owner: now.record.Name, token: operation.Token, fencing: operation.Fencing, after: now.highest,
		shared: operation.Shared,
	}
	for _, key := range operation.Keys {
		granted.keys[key] = true
	}
	if now.told {
		granted.end = now.lasts(operation)
	}
	now.add(granted)
	return now.takes(operation.Fencing, highest)
}

// releases ends a grant that is held, or was released by an earlier request.
func (now *moment) releases(operation *Operation) bool {
	at := now.holding(operation.Token)
	if at < 0 {
		return !now.record.Transaction && slices.Contains(now.released, operation.Token)
	}
	now.grants = slices.Delete(now.grants, at, at+1)
	if !now.told {
		now.released = append(now.released, operation.Token)
		slices.Sort(now.released)
	}
	return true
}

// renews begins the time of a grant anew, which is as long as before.
func (now *moment) renews(operation *Operation) bool {
	at := now.holding(operation.Token)
	if at < 0 {
		return false
	}
	held := &now.grants[at]
	held.end = max(held.end, now.lasts(operation))
	return learn(&held.fencing, held.after, operation.Fencing)
}

// lists says whether these can be all holders of a lock.
func (now *moment) lists(operation *Operation) bool {
	shown := map[string]bool{}
	for _, holder := range operation.Holders {
		at := now.of(holder.Owner)
		if at < 0 || !now.grants[at].isOf(operation.Keys) || shown[holder.Owner] {
			return false
		}
		if !learn(&now.grants[at].fencing, now.grants[at].after, holder.Fencing) {
			return false
		}
		shown[holder.Owner] = true
	}
	for at := len(now.grants) - 1; at >= 0; at-- {
		held := now.grants[at]
		if held.isOf(operation.Keys) && !shown[held.owner] && !now.ends(at) {
			return false
		}
	}
	return true
}

// breaks ends all grants of a key. Those that were not counted were over: the ones that end first.
func (now *moment) breaks(operation *Operation) bool {
	var ends []int64
	now.grants = slices.DeleteFunc(now.grants, func(held grant) bool {
		if held.isOf(operation.Keys) {
			ends = append(ends, held.end)
		}
		return held.isOf(operation.Keys)
	})
	if !now.told {
		return true
	}
	slices.Sort(ends)
	over := len(ends) - int(operation.N)
	return over >= 0 && (over == 0 || now.isOver(ends[over-1]))
}

// loses says whether a token can be that of no grant which is held.
func (now *moment) loses(operation *Operation) bool {
	if operation.Kind == Release && !now.record.Transaction && slices.Contains(now.released, operation.Token) {
		return false
	}
	at := now.holding(operation.Token)
	return at < 0 || now.ends(at)
}

// isHeld says whether the grant that is told to be in the way is held. Who has waited may hear of none: the
// last one has ended in the moment in which the wait did.
func (now *moment) isHeld(operation *Operation) bool {
	return slices.ContainsFunc(now.grants, func(held grant) bool {
		isTold := held.owner == operation.Holder || operation.Holder == "" && operation.WaitMs > 0
		return isTold && held.isOf(operation.Keys)
	})
}
