package coordination

// admits says whether an operation can be done, all of whose conditions hold by the state before the call.
func (now *moment) admits(operation *Operation) bool {
	switch operation.Kind {
	case Get:
		return now.shows(operation)
	case Put, Increment, Delete:
		return now.admitsWrite(operation)
	case Acquire:
		return now.admitsClaim(operation)
	case Renew:
		return now.renews(operation)
	case Release:
		plain := !now.record.Transaction
		return plain || now.holding(operation.Token) >= 0
	case Show:
		return now.lists(operation)
	case Break:
		return true
	}
	panic("no operation: " + operation.Kind)
}

// does changes the state by an operation that is admitted. Numbers of what is new are larger than the highest
// before.
func (now *moment) does(operation *Operation, highest uint64) bool {
	switch operation.Kind {
	case Put, Increment, Delete:
		return now.writes(operation, highest)
	case Acquire:
		return now.claims(operation, highest)
	case Release:
		return now.releases(operation) || !now.told
	case Break:
		return now.breaks(operation)
	}
	return true
}

// denies says whether an operation can be denied by what it was denied by.
func (now *moment) denies(operation *Operation) bool {
	switch now.record.Code {
	case VersionMismatch:
		return now.mismatches(operation)
	case NotFound:
		return now.mayEnd(&now.documents[operation.Keys[0]])
	case LeaseLost:
		return now.loses(operation)
	case LockHeld:
		return now.isHeld(operation)
	}
	panic("nothing is denied by " + now.record.Code)
}
