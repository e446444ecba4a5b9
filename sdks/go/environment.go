package sluice

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// fill takes from the environment, or from a context, what no option has set, as the command line does. An empty
// variable counts as not set.
func (o *options) fill(getenv func(string) string) error {
	if o.skipsEnvironment {
		getenv = func(string) string { return "" }
	}
	getenv, err := o.fromContext(getenv)
	if err != nil {
		return err
	}
	if len(o.servers) == 0 {
		o.servers = []string{orElse(getenv("SLUICE_SERVER"), defaultServer)}
	}
	o.namespace = orElse(o.namespace, getenv("SLUICE_NAMESPACE"))
	if o.token == "" {
		token, err := tokenOf(getenv)
		if err != nil {
			return err
		}
		o.token = token
	}
	if !canBeSent(o.token) {
		return errors.New("sluice: the token has characters that no token has")
	}
	if o.tls != nil {
		return nil
	}
	return o.fillFiles(getenv)
}

func (o *options) fillFiles(getenv func(string) string) error {
	files := []struct {
		to   *[]byte
		name string
	}{{&o.ca, "SLUICE_CA"}, {&o.cert, "SLUICE_CERT"}, {&o.key, "SLUICE_CERT_KEY"}}
	for _, file := range files {
		path := getenv(file.name)
		if *file.to != nil || path == "" {
			continue
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("sluice: %s: %w", file.name, err)
		}
		*file.to = content
	}
	return nil
}

func tokenOf(getenv func(string) string) (string, error) {
	path := getenv("SLUICE_TOKEN_FILE")
	if path == "" {
		return getenv("SLUICE_TOKEN"), nil
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("sluice: SLUICE_TOKEN_FILE: %w", err)
	}
	return strings.TrimSpace(string(content)), nil
}

// canBeSent tells whether a header can carry the token.
func canBeSent(token string) bool {
	return !strings.ContainsFunc(token, func(r rune) bool { return r < ' ' || r > '~' })
}

func orElse(value, other string) string {
	if value != "" {
		return value
	}
	return other
}
