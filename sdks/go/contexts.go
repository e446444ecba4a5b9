package sluice

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// namedServer is a context of the command line. Credentials are paths of files.
type namedServer struct {
	Server      string `toml:"server"`
	Namespace   string `toml:"namespace"`
	Credentials struct {
		CA        string `toml:"ca"`
		Cert      string `toml:"cert"`
		CertKey   string `toml:"cert_key"`
		TokenFile string `toml:"token_file"`
	} `toml:"credentials"`
}

// findContext returns the context of this name, or without a name the one in use; nil: there is none in use.
func findContext(name string, getenv func(string) string) (*namedServer, error) {
	var file struct {
		Current  string                 `toml:"current"`
		Contexts map[string]namedServer `toml:"contexts"`
	}
	if path := contextsFile(getenv); path != "" {
		_, err := toml.DecodeFile(path, &file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("sluice: %s: %w", path, err)
		}
	}
	chosen := orElse(name, file.Current)
	if chosen == "" {
		return nil, nil
	}
	found, known := file.Contexts[chosen]
	if !known {
		names := strings.Join(slices.Sorted(maps.Keys(file.Contexts)), ", ")
		return nil, fmt.Errorf("sluice: there is no context %q: %s", chosen, orElse(names, "there are none yet"))
	}
	return &found, nil
}

// contextsFile is the path of the file; empty if neither XDG_CONFIG_HOME nor HOME is set.
func contextsFile(getenv func(string) string) string {
	folder := getenv("XDG_CONFIG_HOME")
	if home := getenv("HOME"); folder == "" && home != "" {
		folder = filepath.Join(home, ".config")
	}
	if folder == "" {
		return ""
	}
	return filepath.Join(folder, "sluice", "contexts.toml")
}

// variable is what the context says in the place of a variable of the environment.
func (c *namedServer) variable(name string) string {
	switch name {
	case "SLUICE_SERVER":
		return c.Server
	case "SLUICE_CA":
		return c.Credentials.CA
	case "SLUICE_CERT":
		return c.Credentials.Cert
	case "SLUICE_CERT_KEY":
		return c.Credentials.CertKey
	case "SLUICE_TOKEN_FILE":
		return c.Credentials.TokenFile
	}
	return ""
}

// fromContext replaces the variables that name a server and its credentials by what a context says, if there
// is one to use.
func (o *options) fromContext(getenv func(string) string) (func(string) string, error) {
	if len(o.servers) > 0 {
		if o.context != "" {
			return nil, errors.New("sluice: a client has servers or a context, not both")
		}
		return getenv, nil
	}
	if o.context == "" && getenv("SLUICE_SERVER") != "" {
		return getenv, nil
	}
	// A context that is named counts without the environment, too.
	lookup := getenv
	if o.context != "" {
		lookup = os.Getenv
	}
	found, err := findContext(orElse(o.context, getenv("SLUICE_CONTEXT")), lookup)
	if err != nil || found == nil {
		return getenv, err
	}
	o.namespace = orElse(o.namespace, orElse(getenv("SLUICE_NAMESPACE"), found.Namespace))
	return found.variable, nil
}
