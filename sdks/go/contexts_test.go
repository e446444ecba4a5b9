package sluice

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// contextsIn makes contexts by the command line, in a folder of the test; each is a list of arguments.
func contextsIn(t *testing.T, added ...[]string) string {
	t.Helper()
	binary, err := exec.LookPath(orElse(os.Getenv("SLUICE_BIN"), "sluice"))
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	home := t.TempDir()
	for _, args := range added {
		command := exec.Command(binary, append([]string{"context", "add"}, args...)...)
		command.Env = []string{"XDG_CONFIG_HOME=" + home}
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	return home
}

// filled are options as the environment completes them.
func filled(o options, env map[string]string) (options, error) {
	err := o.fill(func(name string) string { return env[name] })
	return o, err
}

func TestAContextNamesServerNamespaceAndCredentials(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	home := contextsIn(t, []string{"local", "--server", "http://127.0.0.1:1"},
		[]string{`the "shop"`, "--server", "http://shop:2,http://shop:3", "--namespace", "shop", "--token-file", token})
	t.Setenv("XDG_CONFIG_HOME", home)
	cases := []struct {
		what, server, namespace, token string
		options                        options
		env                            map[string]string
	}{
		{"the one in use", "http://127.0.0.1:1", "", "", options{}, map[string]string{"SLUICE_TOKEN": "another"}},
		{"a name", "http://shop:2,http://shop:3", "shop", "secret", options{context: `the "shop"`}, nil},
		{"a variable", "http://shop:2,http://shop:3", "other", "secret", options{},
			map[string]string{"SLUICE_CONTEXT": `the "shop"`, "SLUICE_NAMESPACE": "other"}},
		{"options first", "http://shop:2,http://shop:3", "n", "t",
			options{context: `the "shop"`, namespace: "n", token: "t"}, nil},
		{"a server", "http://given:4", "", "", options{servers: []string{"http://given:4"}}, nil},
		{"the server of the environment", "http://v:5", "", "", options{}, map[string]string{"SLUICE_SERVER": "http://v:5"}},
		{"a name before that", "http://127.0.0.1:1", "", "", options{context: "local"},
			map[string]string{"SLUICE_SERVER": "http://v:5"}},
		{"nothing of the environment", defaultServer, "", "", options{skipsEnvironment: true}, nil},
		{"a name without the environment", "http://127.0.0.1:1", "", "",
			options{skipsEnvironment: true, context: "local"}, nil},
	}
	for _, one := range cases {
		env := map[string]string{"XDG_CONFIG_HOME": home}
		for name, value := range one.env {
			env[name] = value
		}
		o, err := filled(one.options, env)
		if err != nil {
			t.Fatalf("%s: %v", one.what, err)
		}
		if o.servers[0] != one.server || o.namespace != one.namespace || o.token != one.token {
			t.Errorf("%s: %q, %q, %q", one.what, o.servers, o.namespace, o.token)
		}
	}
}

func TestWhatIsWrongWithAContextIsTold(t *testing.T) {
	home := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", home)
	env := map[string]string{"XDG_CONFIG_HOME": home}
	if o, err := filled(options{}, env); err != nil || o.servers[0] != defaultServer {
		t.Errorf("without a file: %v, %v", o.servers, err)
	}
	_, err := filled(options{context: "shop"}, env)
	if err == nil || !strings.Contains(err.Error(), `no context "shop": there are none yet`) {
		t.Error(err)
	}
	_, err = filled(options{context: "shop", servers: []string{"a"}}, env)
	if err == nil || !strings.Contains(err.Error(), "not both") {
		t.Error(err)
	}
	path := filepath.Join(home, "sluice", "contexts.toml")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, broken := range []string{"current = ", "current = 'x'", "current = 1"} {
		if err := os.WriteFile(path, []byte(broken), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := filled(options{}, env); err == nil {
			t.Errorf("%s is no error", broken)
		}
	}
}
