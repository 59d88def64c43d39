package job

import (
	"strings"
	"testing"
)

// A terminal's Ctrl-C goes to its process group: no client is in ours.
func TestClientsHaveAGroup(t *testing.T) {
	said, err := Runner{}.Run(t.Context(), "", "sh", "-c", `echo $$ $(cut -d ' ' -f 5 /proc/$$/stat)`)
	if err != nil {
		t.Fatal(err)
	}
	if words := strings.Fields(said); len(words) != 2 || words[0] != words[1] {
		t.Errorf("got process and group %q, want one number", said)
	}
}

// Of what kubectl logs for its developers people hear where it says nothing else.
func TestClientsThatLog(t *testing.T) {
	const logged = "E1122 18:00:00.000001    7 memcache.go:265] \"Unhandled Error\" err=\"dial tcp 127.0.0.1:1: connect: connection refused\"\n"
	const said = "The connection to the server 127.0.0.1:1 was refused\n"
	for text, want := range map[string]string{logged + logged + said: said, said: said, logged: logged, "": ""} {
		if got := spoken(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
