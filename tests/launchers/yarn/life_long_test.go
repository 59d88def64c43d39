//go:build long

package yarn_test

import (
	"slices"
	"syscall"
	"testing"

	"github.com/muster-agent/muster/tests/servers/hadoop"
)

// TestYARNLong is the rest of the matrix: what TestYARN shows by one form, by the other; and a master that is lost with its
// host while the containers are elsewhere.
func TestYARNLong(t *testing.T) {
	l := newLab(t, nil)
	t.Run("host lost, shell", func(t *testing.T) {
		defer l.y.StartNode(1)
		l.of(t).apart("shell", "lost").hostLost()
	})
	t.Run("killed, service", func(t *testing.T) { l.of(t).killed("service") })
	for _, form := range []string{"service", "shell"} {
		t.Run("master lost, "+form, func(t *testing.T) {
			defer l.y.StartNode(1)
			l.of(t).masterLost(form)
		})
	}
}

// masterLost kills the host of the application's master, on which no container of the gang is: the gang hears nothing of it.
func (l *lab) masterLost(form string) {
	app := "master-" + form
	l.y.Resize(0, 0)
	submitted := l.submitting(form, app, l.keeping(lasting("300")...)...)
	l.await("its master", func() bool {
		return slices.ContainsFunc(l.y.Applications(), func(a hadoop.Application) bool { return a.Name == app && a.RunningContainers == 1 })
	})
	l.y.Resize(1, masterRoom)
	l.y.Resize(0, wholeHost)
	j := submitted()
	j.await("a checkpoint on HDFS", func() bool { return j.stored() > 0 })
	j.signal(syscall.SIGSTOP) // or the training would be over before YARN misses the host
	l.y.KillNode(1)
	j.await("a second master", func() bool { return j.y.Attempts(j.id) == 2 })
	j.signal(syscall.SIGCONT)
	j.endsAfter("SUCCEEDED", 2)
	if s := j.status(); s.Outcome != "succeeded" || s.Generation != 1 {
		l.t.Errorf("got %+v, want success in generation 1", s)
	}
	if logs := j.logs("ps-0", "stdout.log"); len(logs) != 1 {
		l.t.Errorf("logs of ps-0: %v, want one", logs)
	}
}
