package checkpoint_test

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/tests/need"
	"github.com/muster-agent/muster/tests/servers/hadoop"
)

// A host is lost: its container comes up on another one, brings the checkpoint back that every rank has, and all go on from
// that. The old agent lives on behind a cut link, where it still reaches the store: what it saves is never committed, changes
// nothing that the others stored, and is taken away once it hears that its time is over.
func TestHostLost(t *testing.T) {
	need.Root(t)
	l := newLab(t, "", nil)
	hostLost(l, func(worker int) map[string]string {
		return l.tree(filepath.Join(l.store, l.app, fmt.Sprintf("worker-%d", worker)))
	})
}

// The same with the checkpoints in HDFS.
func TestHostLostOnHDFS(t *testing.T) {
	need.Root(t)
	c := hadoop.Shared(t)
	dir := c.Folder(t)
	l := newLab(t, c.URI+dir, nil)
	l.env = []string{"HADOOP_CONF_DIR=" + c.ConfDir, "HADOOP_USER_NAME=root"}
	for host := range workerHosts {
		for _, server := range []string{c.NameNodeAddr(0), fmt.Sprintf("127.0.0.1:%d", c.DataNodePort(0))} {
			l.relay(host, server, server)
		}
	}
	hostLost(l, func(worker int) map[string]string {
		all := map[string]string{}
		top := path.Join(dir, l.app, fmt.Sprintf("worker-%d", worker))
		for line := range strings.Lines(c.FsShell(t, "-ls", "-R", top)) {
			if f := strings.Fields(line); len(f) == 8 && f[0][0] == '-' {
				all[strings.TrimPrefix(f[7], top+"/")] = f[4] + " " + f[5] + " " + f[6] // size and time of the last change
			}
		}
		return all
	})
}

var storedName = regexp.MustCompile(`^(step-\d+-g\d+)-[0-9a-f]{8}/files/ckpt-\d+$`)

// names are the checkpoints in a store's files.
func names(files map[string]string) []string {
	var all []string
	for name := range files {
		if m := storedName.FindStringSubmatch(name); m != nil {
			all = append(all, m[1])
		} else if !strings.HasPrefix(name, "step-") {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

func hostLost(l *lab, stored func(worker int) map[string]string) {
	t := l.t
	l.ttl = time.Minute // the old agent saves what it is told to before it fences itself, however slow its successor is
	first := l.agent(0, 0)
	l.says(0, 0, "agent.log", "msg=conducting on=true") // with that much time a conductor that is cut off is missed for long
	old := l.agent(1, 1)
	l.says(0, 0, "stdout.log", "host h0 generation 1 from \n")
	l.says(1, 1, "stdout.log", "host h1 generation 1 from \n")
	for _, step := range []int{10, 20} {
		l.save(0, 0, step)
		l.save(1, 1, step)
	}
	l.save(0, 0, 30) // which worker-1 does not have

	l.hosts.Cut(1)
	l.gone(1)
	replacement := l.agent(2, 1)
	l.says(2, 1, "stdout.log", "host h2 generation 2 from ckpt-20\n")
	l.says(0, 0, "stdout.log", "host h0 generation 2 from ckpt-20\n")
	if got := l.read(filepath.Join(l.work(2), "worker-1", "saves", "ckpt-20")); got != "of h1, generation 1\n" {
		t.Errorf("brought back: %q, want what host 1 saved", got)
	}
	aside := filepath.Join(l.work(0), "worker-0", "saves", ".muster-set-aside-g2", "ckpt-30")
	if got := l.read(aside); got != "of h0, generation 1\n" {
		t.Errorf("%s: %q, want what only worker-0 had", aside, got)
	}
	l.save(2, 1, 25)
	before := stored(1)

	// The old process saves the same step and a newer one.
	for _, step := range []int{25, 90} {
		l.order(1, step)
		l.says(1, 1, "agent.log", fmt.Sprintf(`msg="checkpoint uploaded" step=%d `, step))
	}
	if record := l.kv("checkpoint/worker/1"); strings.Contains(record, `"step":90`) || strings.Count(record, `"step":25`) != 1 {
		t.Errorf("committed: %s", record)
	}
	during := stored(1)
	for name, text := range before {
		if during[name] != text {
			t.Errorf("%s: the old agent has changed it", name)
		}
	}

	l.hosts.Heal(1)
	l.says(1, 1, "agent.log", `msg="refused checkpoint of an older generation removed" step=90 `)
	if code := l.ends(old); code != 75 {
		t.Errorf("the old agent ended with %d, want 75", code)
	}
	if diff := cmp.Diff(before, stored(1)); diff != "" {
		t.Errorf("the store (-before the old agent's saves +after its end):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"step-10-g1", "step-20-g1", "step-25-g2"}, names(stored(1))); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	l.must(os.WriteFile(l.control("end"), nil, 0o600))
	for _, cmd := range []int{l.ends(first), l.ends(replacement)} {
		if cmd != 0 {
			t.Errorf("an agent ended with %d, want 0", cmd)
		}
	}
}
