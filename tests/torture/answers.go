package main

import (
	"encoding/json"
	"errors"

	"sluice.torture/coordination"
)

// told is an answer to any call about locks and documents.
type told struct {
	Version uint64
	Etag    uint64 `json:",string"`
	Content string
	Token   string
	Fencing uint64 `json:"fencing_token,string"`
	Holders json.RawMessage
}

// understand puts into a record what the answer to a call that succeeded tells.
func understand(body []byte, record *coordination.Record) error {
	if !record.Transaction {
		var told told
		if err := json.Unmarshal(body, &told); err != nil {
			return err
		}
		return tell(told, &record.Operations[0])
	}
	var all struct {
		Results []struct {
			Written *told
			Grant   *told
		}
		Duplicate bool
	}
	if err := json.Unmarshal(body, &all); err != nil {
		return err
	}
	if len(all.Results) != len(record.Operations) {
		return errors.New("not as many results as operations")
	}
	record.Duplicate = all.Duplicate
	for at, result := range all.Results {
		for _, told := range []*told{result.Written, result.Grant} {
			if told == nil {
				continue
			}
			if err := tell(*told, &record.Operations[at]); err != nil {
				return err
			}
		}
	}
	return nil
}

// tell puts what was told of one operation into it.
func tell(told told, operation *coordination.Operation) error {
	operation.Version, operation.Etag, operation.Fencing = told.Version, told.Etag, told.Fencing
	switch operation.Kind {
	case coordination.Acquire:
		operation.Token = told.Token
	case coordination.Get:
		var content struct {
			By string
			N  int64
		}
		err := json.Unmarshal([]byte(told.Content), &content)
		operation.By, operation.N = content.By, content.N
		return err
	case coordination.Break:
		return json.Unmarshal(told.Holders, &operation.N)
	case coordination.Show:
		var holders []struct {
			Owner   string
			Fencing uint64 `json:"fencing_token,string"`
		}
		if err := json.Unmarshal(told.Holders, &holders); err != nil {
			return err
		}
		for _, holder := range holders {
			shown := coordination.Holder{Owner: holder.Owner, Fencing: holder.Fencing}
			operation.Holders = append(operation.Holders, shown)
		}
	}
	return nil
}

// explain puts into a record what the answer to a call that was denied tells.
func explain(body []byte, record *coordination.Record) error {
	var denial struct {
		Error struct {
			Details struct {
				Version   uint64
				Owner     string
				Operation int
			}
		}
	}
	if err := json.Unmarshal(body, &denial); err != nil {
		return err
	}
	details := denial.Error.Details
	if details.Operation >= len(record.Operations) {
		return errors.New("there is no such operation")
	}
	record.Failed = details.Operation
	operation := &record.Operations[record.Failed]
	operation.Version, operation.Holder = details.Version, details.Owner
	return nil
}
