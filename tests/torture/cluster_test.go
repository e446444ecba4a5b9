package main

import (
	"encoding/json"
	"testing"
)

func TestAClusterIsWholeWhenItsNodesVoteAndNothingIsWrongNow(t *testing.T) {
	nodes := `"nodes":[{"number":1},{"number":2},{"number":4}]`
	votes := `{"node":2,"votes":true,"heard":true},{"node":4,"votes":true,"heard":true}`
	over := `"node 1 could not pass requests on to node 2 within the last minute: see that it reaches it",
		"the clock of node 2 was 90 s ahead of this node's when they connected: set the clocks right"`
	led := nodes + `,"shards":[{"leader":1,"followers":[` + votes + `]}]}`
	for _, told := range []struct {
		text    string
		isWhole bool
	}{
		{`{"problems":[` + over + `],` + led, true},
		{`{"problems":["the disk of node 2 is full"],` + led, false},
		{`{` + nodes + `,"shards":[{"followers":[` + votes + `]}]}`, false},
		{`{` + nodes + `,"shards":[{"leader":1,"followers":[` + votes + `,{"node":3,"votes":true}]}]}`, false},
		{`{` + nodes + `,"shards":[{"leader":1,"followers":[{"node":4,"heard":true}]}]}`, false},
		{`{"nodes":[{"number":1}],"shards":[{"leader":1}]}`, false},
		{`{}`, false},
	} {
		var now status
		if err := json.Unmarshal([]byte(told.text), &now); err != nil {
			t.Fatal(err)
		}
		if now.isWhole([]uint64{1, 2, 4}) != told.isWhole {
			t.Errorf("whole: %v; %s", !told.isWhole, told.text)
		}
	}
}
