package submit

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// A client that hangs is ended after its patience, with all that it has started, and is no answer: to a job that was sent, nobody
// knows.
func TestClientsThatHang(t *testing.T) {
	for _, tt := range []struct {
		verb     string
		patience time.Duration
		unknown  bool
	}{
		{"get", time.Second, false},
		{"create", innocent, true}, // what is asked before it answers
	} {
		t.Run(tt.verb, func(t *testing.T) {
			dir := fake(t, "kubectl", fakeKubectl)
			write(t, dir, "hangs", tt.verb+"\n")
			k := &Kubernetes{Objects: someObjects, client: client{patience: tt.patience}}
			_, err := k.Start(t.Context())
			if !errors.Is(err, ErrUnreachable) || errors.Is(err, ErrUnknown) != tt.unknown || !strings.Contains(err.Error(), "no answer in "+tt.patience.String()) {
				t.Errorf("got %v; want no answer, unknown: %v", err, tt.unknown)
			}
			if _, end := k.Hints(); tt.unknown && end != "kubectl delete service/d1 job/d1-worker" {
				t.Errorf("got %q for what ends it", end)
			}
		})
	}
}

// What a client leaves behind may hold its output open: the client has ended all the same.
func TestClientsThatLeaveAChild(t *testing.T) {
	fake(t, "sbatch", "sleep 600 &\necho $! >\"$FAKE/child\"\necho 7\n")
	s := &Slurm{Script: "#!/bin/sh\n"}
	if id, err := s.Start(t.Context()); id != "7" || err != nil {
		t.Errorf("got %q, %v, want the job's id", id, err)
	}
	if _, err := s.command(t.Context(), "", "sh", "-c", `kill "$(cat "$FAKE/child")"`); err != nil {
		t.Error(err)
	}
}

// Whoever is called off before has started nothing, and once it is sent hears of it.
func TestCalledOff(t *testing.T) {
	dir := fake(t, "sbatch", "echo 7\n")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := &Slurm{Script: "#!/bin/sh\n"}
	if _, err := s.Start(ctx); !errors.Is(err, context.Canceled) || asked(t, dir) != "" {
		t.Errorf("got %v after %q, want nothing sent", err, asked(t, dir))
	}
}

// A client that ends without its launcher's answer leaves a job that may be there; its launcher's no leaves none.
func TestClientsThatHaveNoAnswer(t *testing.T) {
	for _, tt := range []struct {
		does    string
		unknown bool
	}{
		{"echo 'sbatch: error: Batch job submission failed: Socket timed out on send/recv operation' >&2; exit 1", true},
		{"echo 'sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)' >&2; exit 1", true},
		{"echo 'sbatch: error: Batch job submission failed: Zero Bytes were transmitted or received' >&2; exit 1", true},
		{`echo 'error: Post "https://c:6443/api/v1/namespaces/a/services": read tcp 10.0.0.1:1->10.0.0.2:6443: read: connection reset by peer' >&2; exit 1`, true},
		{`echo 'error: Post "https://c:6443/api": http2: client connection lost' >&2; exit 1`, true},
		{`echo 'error: Post "https://c:6443/api": unexpected EOF' >&2; exit 1`, true},
		{"kill -9 $$", true},
		{`echo 'E1122 18:00:00.000001    7 memcache.go:265] "Unhandled Error" err="net/http: TLS handshake timeout"' >&2; echo 'Error from server (Forbidden): no' >&2; exit 1`, false},
		{`echo 'E1122 18:00:00.000001    7 memcache.go:265] "Unhandled Error" err="net/http: TLS handshake timeout"' >&2; exit 1`, true},
		{"echo 'sbatch: error: Batch job submission failed: Invalid partition name specified' >&2; exit 1", false},
		{`echo 'Error from server (InternalError): failed calling webhook "j": dial tcp 10.96.0.1:443: connect: connection refused' >&2; exit 1`, false},
		{"exit 1", false},
	} {
		fake(t, "sbatch", tt.does+"\n")
		s := &Slurm{Script: "#!/bin/sh\n"}
		if _, err := s.Start(t.Context()); errors.Is(err, ErrUnknown) != tt.unknown || errors.Is(err, ErrUnreachable) != tt.unknown || errors.Is(err, ErrRefused) == tt.unknown {
			t.Errorf("%s: got %v, unknown: want %v", tt.does, err, tt.unknown)
		}
		if look, _ := s.Hints(); !strings.HasPrefix(look, "squeue --me") {
			t.Errorf("got %q to look for a job without a number", look)
		}
	}
}

// A terminal's Ctrl-C goes to its process group: no client is in ours.
func TestClientsHaveAGroup(t *testing.T) {
	said, err := client{}.command(t.Context(), "", "sh", "-c", `echo $$ $(cut -d ' ' -f 5 /proc/$$/stat)`)
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

// A web server that has no jobs is no Nomad.
func TestNotNomad(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	n := &Nomad{Address: server.URL, Job: `{"Job":{"ID":"d1"}}`}
	if _, err := n.Start(t.Context()); !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "not Nomad's HTTP API (GET /v1/job/d1: 404 Not Found") {
		t.Errorf("got %v, want that it is not Nomad", err)
	}
}
