package sluice

import (
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// readDetail reads google.rpc.ErrorInfo and google.rpc.RetryInfo, whose fields are few and never change; so
// the package needs no module for their types.
func readDetail(e *Error, url string, value []byte) {
	switch {
	case strings.HasSuffix(url, "/google.rpc.ErrorInfo"):
		readErrorInfo(e, value)
	case strings.HasSuffix(url, "/google.rpc.RetryInfo"):
		eachField(value, func(number protowire.Number, delay []byte, _ uint64) {
			if number == 1 {
				e.RetryAfter = readDuration(delay)
			}
		})
	}
}

func readErrorInfo(e *Error, value []byte) {
	eachField(value, func(number protowire.Number, bytes []byte, _ uint64) {
		switch number {
		case 1:
			e.Code = string(bytes)
		case 3:
			name, text := readEntry(bytes)
			if e.Details == nil {
				e.Details = map[string]string{}
			}
			e.Details[name] = text
		}
	})
}

func readEntry(entry []byte) (name, text string) {
	eachField(entry, func(number protowire.Number, bytes []byte, _ uint64) {
		switch number {
		case 1:
			name = string(bytes)
		case 2:
			text = string(bytes)
		}
	})
	return name, text
}

func readDuration(value []byte) time.Duration {
	var duration time.Duration
	eachField(value, func(number protowire.Number, _ []byte, varint uint64) {
		switch number {
		case 1:
			duration += time.Duration(varint) * time.Second
		case 2:
			duration += time.Duration(varint)
		}
	})
	return duration
}

// eachField calls f for each field of a message, up to one that cannot be read.
func eachField(message []byte, f func(number protowire.Number, bytes []byte, varint uint64)) {
	for len(message) > 0 {
		number, wire, n := protowire.ConsumeTag(message)
		if n < 0 {
			return
		}
		message = message[n:]
		var bytes []byte
		var varint uint64
		switch wire {
		case protowire.BytesType:
			bytes, n = protowire.ConsumeBytes(message)
		case protowire.VarintType:
			varint, n = protowire.ConsumeVarint(message)
		default:
			n = protowire.ConsumeFieldValue(number, wire, message)
		}
		if n < 0 {
			return
		}
		message = message[n:]
		f(number, bytes, varint)
	}
}
