package client

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/muster-agent/muster/shim/launcher/job"
	"github.com/muster-agent/muster/shim/launcher/job/jobtest"
)

// What a client leaves behind may hold its output open: the client has ended all the same.
func TestClientsThatLeaveAChild(t *testing.T) {
	jobtest.Fake(t, "sbatch", "sleep 600 &\necho $! >\"$FAKE/child\"\necho 7\n")
	s := &client{Script: "#!/bin/sh\n"}
	if id, err := s.Start(t.Context()); id != "7" || err != nil {
		t.Errorf("got %q, %v, want the job's id", id, err)
	}
	if _, err := s.Run(t.Context(), "", "sh", "-c", `kill "$(cat "$FAKE/child")"`); err != nil {
		t.Error(err)
	}
}

// Whoever is called off before has started nothing, and once it is sent hears of it.
func TestCalledOff(t *testing.T) {
	dir := jobtest.Fake(t, "sbatch", "echo 7\n")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := &client{Script: "#!/bin/sh\n"}
	if _, err := s.Start(ctx); !errors.Is(err, context.Canceled) || jobtest.Asked(t, dir) != "" {
		t.Errorf("got %v after %q, want nothing sent", err, jobtest.Asked(t, dir))
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
		jobtest.Fake(t, "sbatch", tt.does+"\n")
		s := &client{Script: "#!/bin/sh\n"}
		if _, err := s.Start(t.Context()); errors.Is(err, job.ErrUnknown) != tt.unknown || errors.Is(err, job.ErrUnreachable) != tt.unknown || errors.Is(err, job.ErrRefused) == tt.unknown {
			t.Errorf("%s: got %v, unknown: want %v", tt.does, err, tt.unknown)
		}
		if look, _ := s.Hints(); !strings.HasPrefix(look, "squeue --me") {
			t.Errorf("got %q to look for a job without a number", look)
		}
	}
}

func TestSlurmStates(t *testing.T) {
	for _, tt := range []struct {
		line string
		want job.State
	}{
		{"JobId=7 JobName=d1 JobState=PENDING Reason=Resources Dependency=(null) ExitCode=0:0", job.State{Word: "PENDING", Why: "Resources"}},
		{"JobId=7 JobState=RUNNING Reason=None ExitCode=0:0 Comment=JobState=COMPLETED", job.State{Word: "RUNNING"}},
		{"JobId=7 JobState=COMPLETED Reason=None ExitCode=0:0", job.State{Word: "COMPLETED", Over: true, OK: true}},
		{"JobId=7 JobState=FAILED Reason=NonZeroExitCode ExitCode=93:0", job.State{Word: "FAILED", Over: true, Why: "NonZeroExitCode, exit code 93:0"}},
		{"JobId=7 JobState=TIMEOUT Reason=TimeLimit ExitCode=0:15", job.State{Word: "TIMEOUT", Over: true, Why: "the time limit of the job is over, exit code 0:15"}},
		{"JobId=7 JobState=CANCELLED Reason=None ExitCode=0:15", job.State{Word: "CANCELLED", Over: true, Why: "exit code 0:15"}},
		{"", job.State{}},
	} {
		if got := stateOf(tt.line); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.line, got, tt.want)
		}
	}
}
