package submit

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// A client that hangs is ended after its patience, with all that it has started, and is no answer: to a job that was sent, nobody
// knows.
func TestClientsThatHang(t *testing.T) {
	for _, tt := range []struct {
		verb    string
		unknown bool
	}{
		{"get", false},
		{"create", true},
	} {
		t.Run(tt.verb, func(t *testing.T) {
			dir := fake(t, "kubectl", fakeKubectl)
			write(t, dir, "hangs", tt.verb+"\n")
			k := &Kubernetes{Objects: someObjects, client: client{patience: 3 * time.Second}}
			_, err := k.Start(t.Context())
			if !errors.Is(err, ErrUnreachable) || errors.Is(err, ErrUnknown) != tt.unknown || !strings.Contains(err.Error(), "no answer in 3s") {
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
