package main

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"

	"sluice.torture/coordination"
	"sluice.torture/history"
)

// keyName is the name of a key of a group on the server.
func keyName(group string, key int) string { return fmt.Sprintf("%s-%d", group, key) }

// spoil makes of a call another one, that the history does not tell of: as if the server had a fault.
type spoil func(record coordination.Record, path string) (coordination.Record, string)

// spoils are faults that a server could have, by their names.
var spoils = map[string]spoil{
	"stale-read": func(record coordination.Record, path string) (coordination.Record, string) {
		if record.Operations[0].Kind == coordination.Get {
			path += "?stale=true"
		}
		return record, path
	},
	"lost-fence": func(record coordination.Record, path string) (coordination.Record, string) {
		record.Operations = slices.Clone(record.Operations)
		for at := range record.Operations {
			if record.Operations[at].Kind == coordination.Put {
				record.Operations[at].Token = ""
			}
		}
		return record, path
	},
}

// coordinate makes the call that a record asks for, records what was told, and returns it.
func coordinate(client *client, record coordination.Record, spoil spoil) coordination.Record {
	method, path, body, headers := request(record)
	if spoil != nil {
		var spoilt coordination.Record
		spoilt, path = spoil(record, path)
		method, _, body, headers = request(spoilt)
	}
	answer := client.call(method, path, body, headers)
	record.Kind, record.Client = coordination.Called, answer.Client
	record.Call, record.Return = answer.Call, answer.Return
	record.Outcome, record.Code = answer.Outcome, answer.Code
	record.Operations = slices.Clone(record.Operations) // a repeat is told something else
	switch answer.Outcome {
	case history.OK:
		if err := understand(answer.body, &record); err != nil {
			record.Outcome, record.Code = coordination.Unknown, "unexpected: "+string(answer.body)
		}
	case history.Lost, history.Denied:
		record.Outcome = coordination.Denied
		if err := explain(answer.body, &record); err != nil {
			record.Outcome, record.Code = coordination.Unknown, "unexpected: "+string(answer.body)
		}
	}
	client.recorder.tell(record)
	return record
}

// request returns the call of the HTTP API.
func request(record coordination.Record) (method, path string, body any, headers map[string]string) {
	if record.Transaction {
		var operations []any
		for _, operation := range record.Operations {
			asked := fields(record, operation)
			operations = append(operations, map[string]any{inTransaction[operation.Kind]: asked})
		}
		if record.Repeatable {
			headers = map[string]string{"Idempotency-Key": identity(record)}
		}
		return "POST", "/v1/transactions", map[string]any{"operations": operations}, headers
	}
	operation := record.Operations[0]
	asked := fields(record, operation)
	delete(asked, "key") // it is in the path
	if record.Repeatable {
		asked["request_id"] = identity(record)
	}
	switch operation.Kind {
	case coordination.Acquire:
		asked["wait_ms"] = operation.WaitMs
		return "POST", "/v1/locks", asked, nil
	case coordination.Renew, coordination.Release:
		return "POST", "/v1/grants/" + operation.Kind, asked, nil
	}
	key := keyName(record.Group, operation.Keys[0])
	switch operation.Kind {
	case coordination.Get:
		return "GET", "/v1/documents/" + key, nil, nil
	case coordination.Put:
		return "PUT", "/v1/documents/" + key, asked, nil
	case coordination.Increment:
		return "PATCH", "/v1/documents/" + key, asked, nil
	case coordination.Delete:
		return "DELETE", "/v1/documents/" + key + "?" + parameters(asked), nil, nil
	case coordination.Show:
		return "GET", "/v1/locks/" + key, nil, nil
	case coordination.Break:
		return "DELETE", "/v1/locks/" + key, nil, nil
	}
	panic("no call: " + operation.Kind)
}

// identity is the text by which a server knows a repeat.
func identity(record coordination.Record) string { return record.Group + "." + record.Name }

func parameters(asked map[string]any) string {
	values := url.Values{}
	for name, value := range asked {
		values.Set(name, fmt.Sprint(value))
	}
	return values.Encode()
}

// inTransaction are the names of operations in a transaction.
var inTransaction = map[string]string{
	coordination.Put: "put", coordination.Increment: "patch", coordination.Delete: "delete",
	coordination.Acquire: "acquire", coordination.Release: "release",
}

// fields returns what an operation asks for.
func fields(record coordination.Record, operation coordination.Operation) map[string]any {
	asked := map[string]any{}
	if operation.Token != "" {
		asked["token"] = operation.Token
	}
	switch operation.Kind {
	case coordination.Acquire:
		var keys []string
		for _, key := range operation.Keys {
			keys = append(keys, keyName(record.Group, key))
		}
		asked["keys"], asked["owner"], asked["ttl_ms"] = keys, record.Name, operation.TTLMs
		if operation.Shared {
			asked["mode"] = "shared"
		}
		return asked
	case coordination.Renew, coordination.Release:
		return asked
	case coordination.Put:
		asked["content"] = fmt.Sprintf(`{"by":%q,"n":%d}`, record.Name, operation.N)
		if operation.TTLMs > 0 {
			asked["ttl_ms"] = operation.TTLMs
		}
	case coordination.Increment:
		asked["increment"] = []any{map[string]any{"pointer": "/n", "by": strconv.FormatInt(operation.N, 10)}}
	}
	if len(operation.Keys) > 0 {
		asked["key"] = keyName(record.Group, operation.Keys[0])
	}
	condition(asked, operation)
	return asked
}

func condition(asked map[string]any, operation coordination.Operation) {
	if operation.IfVersion > 0 {
		asked["if_version"] = operation.IfVersion
	}
	if operation.IfEtag > 0 {
		asked["if_etag"] = strconv.FormatUint(operation.IfEtag, 10)
	}
	if operation.IfExists {
		asked["if_exists"] = true
	}
	if operation.IfAbsent {
		asked["if_absent"] = true
	}
}
