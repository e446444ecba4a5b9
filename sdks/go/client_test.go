package sluice

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestServersAreTakenApart(t *testing.T) {
	good := map[string]string{
		"http://a:1": "a:1", "a:1": "a:1", "http://a": "a:80",
		"https://a/": "a:443", "https://[::1]:7": "[::1]:7",
	}
	for text, wanted := range good {
		address, encrypted, err := parseServer(text)
		if err != nil || address != wanted || encrypted != strings.HasPrefix(text, "https") {
			t.Errorf("%s: %s, %v, %v", text, address, encrypted, err)
		}
	}
	bad := []string{"", "ftp://a:1", "http://a:1/path", "http://a:1?b", "http://a:x", "http://:1"}
	for _, text := range bad {
		if address, _, err := parseServer(text); err == nil {
			t.Errorf("%q is %s", text, address)
		}
	}
	if _, err := New(WithoutEnvironment(), WithServers("https://a:1,http://b:2")); err == nil {
		t.Error("one server with TLS and one without")
	}
}

func TestTheEnvironmentSetsWhatNoOptionDoes(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("t1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{
		"SLUICE_SERVER": "a:1,b:2", "SLUICE_NAMESPACE": "ns", "SLUICE_TOKEN_FILE": token,
		"SLUICE_TOKEN": "t2", "SLUICE_CA": token,
	}
	getenv := func(name string) string { return env[name] }
	var empty, set options
	set = options{servers: []string{"c:3"}, namespace: "own", token: "t3", ca: []byte("ca")}
	for _, o := range []*options{&empty, &set} {
		if err := o.fill(getenv); err != nil {
			t.Fatal(err)
		}
	}
	got := []string{empty.servers[0], empty.namespace, empty.token, string(empty.ca)}
	if !slices.Equal(got, []string{"a:1,b:2", "ns", "t1", "t1\n"}) {
		t.Error(got)
	}
	got = []string{set.servers[0], set.namespace, set.token, string(set.ca)}
	if !slices.Equal(got, []string{"c:3", "own", "t3", "ca"}) {
		t.Error(got)
	}
	skips := options{skipsEnvironment: true}
	if err := skips.fill(getenv); err != nil || skips.servers[0] != defaultServer || skips.token != "" {
		t.Error(skips.servers, err)
	}
	env["SLUICE_CERT"] = "no/such/file"
	if err := (&options{}).fill(getenv); err == nil {
		t.Error("a certificate that is not there")
	}
}

func TestAllCodesOfTheServerAreThere(t *testing.T) {
	docs, err := os.ReadFile("../../docs/errors.md")
	if err != nil {
		t.Skipf("this is no copy of the whole repository: %v", err)
	}
	source, err := os.ReadFile("codes.go")
	if err != nil {
		t.Fatal(err)
	}
	found := func(text []byte, pattern string) (all []string) {
		for _, match := range regexp.MustCompile(pattern).FindAllSubmatch(text, -1) {
			all = append(all, string(match[1]))
		}
		slices.Sort(all)
		return all
	}
	listed := found(docs, "(?m)^\\| `([a-z_]+)` \\| \\d")
	known := found(source, `Code\w+\s+= "([a-z_]+)"`)
	known = slices.DeleteFunc(known, func(code string) bool { return code == CodeUnreachable })
	if !slices.Equal(listed, known) {
		t.Errorf("codes of the server:\n%v\ncodes of this package:\n%v", listed, known)
	}
}

func TestDelaysGrowAndStayBelowTheirBound(t *testing.T) {
	tries := &tries{}
	for range 40 {
		delay, again := tries.next(&Error{Code: CodeShuttingDown}, once, false)
		if !again || delay > delayMax {
			t.Fatal(delay)
		}
	}
	if delay, _ := tries.next(&Error{Code: CodeNoLeader}, once, true); delay > leaderDelayMax {
		t.Error("a cluster is asked again soon", delay)
	}
}
