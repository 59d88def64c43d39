package submit_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/muster-agent/muster/tests/folder"
	"github.com/muster-agent/muster/tests/servers/consulserver"
	"github.com/muster-agent/muster/tests/servers/nomadserver"
	"github.com/muster-agent/muster/tests/servers/tinygang"
)

func TestNomad(t *testing.T) {
	nomad := nomadserver.Start(t, nomadserver.Options{})
	consul := consulserver.Start(t, consulserver.Options{})
	store := filepath.Join(t.TempDir(), "store")
	env := []string{"NOMAD_ADDR=http://" + nomad.HTTPAddr, "CONSUL_HTTP_ADDR=" + consul.HTTPAddr, "MUSTER_AGENT_STATE_DIR=" + t.TempDir()}
	args := func(gang tinygang.Gang, id string, more ...string) []string {
		words := []string{"submit", "nomad", gang.App, "--app-id", id, "--store", store, "--engine", "process", "--work-dir", filepath.Join(folder.Temp(t, "su-"), id)}
		return append(words, more...)
	}

	tiny, beside := fmt.Sprintf("submit-%d", os.Getpid()), fmt.Sprintf("beside-%d", os.Getpid())
	for _, id := range []string{tiny, beside} { // Nomad's tasks have the host's own state folder
		t.Cleanup(func() { _ = os.RemoveAll(filepath.Join("/run/muster/apps", id)) })
	}

	t.Run("a run that fails, beside one that shares its files", func(t *testing.T) {
		gang := tinygang.Write(t, folder.Temp(t, "su-"), 2, map[string]string{"muster.restart": "never"})
		web := httptest.NewServer(http.FileServer(http.Dir(store)))
		defer web.Close()
		other := submit(t, env, args(gang, beside, "--instances", "worker=0", "--store-as", web.URL, "--wait")...)
		other.says("running: 1 instance, generation 1")
		if err := other.cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		if code := other.ends(); code != 130 || other.out.String() != beside+"\n" {
			t.Fatalf("submit ends with %d: %s%s", code, other.out.String(), other.err.String())
		}
		watcher := submit(t, env, "status", tiny, "--run", "r1", "--wait") // before anybody knows of it
		watcher.says("waiting: no agent of the run is there yet")
		one := submit(t, env, args(gang, tiny, "--run", "r1", "--wait")...)
		one.says("running: 3 instances, generation 1")
		again := submit(t, env, args(gang, tiny, "--wait")...)
		if code := again.ends(); code != 75 {
			t.Errorf("a second run beside the first: got %d, want 75\n%s", code, again.err.String())
		}
		before := left(t, store)
		same := submit(t, env, args(gang, tiny, "--run", "r1", "--wait")...)
		if code := same.ends(); code != 75 {
			t.Errorf("the same run once more: got %d, want 75\n%s", code, same.err.String())
		}
		if after := left(t, store); !slices.Equal(after, before) {
			t.Errorf("left are %v after the same run was refused, want what the one that runs has: %v", after, before)
		}
		gang.Go(t, 3)
		if code := one.ends(); code != 3 {
			t.Errorf("the run that fails with 3: got %d\n%s%s", code, one.out.String(), one.err.String())
		}
		if out := one.out.String(); !strings.HasPrefix(out, tiny+"\n"+tiny+": failed (app-error)") {
			t.Errorf("got %q, want the id, and the verdict", out)
		}
		if code := watcher.ends(); code != 3 || !strings.Contains(watcher.out.String(), "failed (app-error)") {
			t.Errorf("who followed it: got %d\n%s%s", code, watcher.out.String(), watcher.err.String())
		}
		nomad.AwaitJob(tiny, "dead")
		all := left(t, store)
		if !slices.ContainsFunc(all, func(name string) bool { return strings.HasSuffix(name, "-muster") }) ||
			!slices.ContainsFunc(all, func(name string) bool { return strings.HasSuffix(name, ".zip") }) ||
			slices.ContainsFunc(all, func(name string) bool { return strings.HasPrefix(name, tiny+"@r1/") }) {
			t.Errorf("left are %v, want the files of the run beside it, and nothing of this one", all)
		}
		nomad.StopJob(beside)
		nomad.AwaitJob(beside, "dead")
	})

	t.Run("what the last run has left says nothing of the next", func(t *testing.T) {
		gang := tinygang.Write(t, folder.Temp(t, "su-"), 1, nil)
		watcher := submit(t, env, "status", tiny, "--run", "r2", "--wait") // while the last one is there
		next := submit(t, env, args(gang, tiny, "--run", "r2", "--wait")...)
		next.says("running: 2 instances, generation 2")
		here := []string{"MUSTER_AGENT_STATE_DIR=/run/muster"} // as on the host itself
		if c := submit(t, here, "signal", tiny+"/worker-0", "KILL"); c.ends() != 0 {
			t.Fatal(c.err.String())
		}
		next.says("worker-0: attempt 2: killed by SIGKILL")
		// From elsewhere agents are asked where they listen.
		if c := submit(t, env, "status", tiny); c.ends() != 0 || !strings.Contains(c.out.String(), "attempt 1 killed by SIGKILL") {
			t.Errorf("status from elsewhere: %s%s", c.out.String(), c.err.String())
		}
		gang.Go(t, 0)
		if code := next.ends(); code != 0 {
			t.Errorf("got %d\n%s%s", code, next.out.String(), next.err.String())
		}
		if code := watcher.ends(); code != 0 || !strings.Contains(watcher.out.String(), "succeeded") {
			t.Errorf("who followed it: got %d\n%s%s", code, watcher.out.String(), watcher.err.String())
		}
		// Each allocation has a log folder of its own.
		for _, instance := range []string{"ps-0", "worker-0"} {
			if c := submit(t, here, "logs", tiny+"/"+instance, "--agent"); c.ends() != 0 || !strings.Contains(c.out.String(), "instance="+instance) {
				t.Errorf("logs of %s after the end: %s%s", instance, c.out.String(), c.err.String())
			}
		}
	})

	t.Run("agents that do not join, whatever is done again", func(t *testing.T) {
		gang := tinygang.Write(t, folder.Temp(t, "su-"), 1, nil)
		never := filepath.Join(t.TempDir(), "never")
		if err := os.WriteFile(never, []byte("#!/bin/sh\nexit 64\n"), 0o755); err != nil { //nolint:gosec // it is run
			t.Fatal(err)
		}
		futile := submit(t, env, args(gang, tiny, "--run", "r3", "--binary", never, "--wait")...)
		futile.says("nomad: ends the job: its agents end, before they have joined, ")
		if code := futile.ends(); code != 1 || !strings.Contains(futile.out.String(), tiny+": no agent has joined: nomad says dead") {
			t.Errorf("got %d\n%s%s", code, futile.out.String(), futile.err.String())
		}
		nomad.AwaitJob(tiny, "dead")
	})
}
