package sluice

import "iter"

// pages goes through all pages of a list. An error ends it.
func pages[T any](page func(after string) ([]T, string, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		after := ""
		for {
			entries, next, err := page(after)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, entry := range entries {
				if !yield(entry, nil) {
					return
				}
			}
			if next == "" {
				return
			}
			after = next
		}
	}
}
