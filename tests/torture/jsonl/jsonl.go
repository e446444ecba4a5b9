// Package jsonl reads files of JSON lines.
package jsonl

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

// Read returns the records of a file, one a line, in its order.
func Read[Record any](path string) ([]Record, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var records []Record
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var record Record
		if err := json.Unmarshal(lines.Bytes(), &record); err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", path, len(records)+1, err)
		}
		records = append(records, record)
	}
	return records, lines.Err()
}
