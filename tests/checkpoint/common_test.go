package checkpoint_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/tests/folder"
	"github.com/muster-agent/muster/tests/need"
)

// fail has the worker on a host end with 3.
func (l *lab) fail(host string) {
	l.must(os.WriteFile(l.control(host+".fail"), nil, 0o600))
}

// status is what `muster status --json` says of the app.
func (l *lab) status() (view struct {
	Directive struct {
		Resume        *int64
		FromBeginning string `json:"from_beginning"`
	}
	Instances []struct {
		Instance string
		Warnings []struct{ Kind, Text string }
	}
},
) {
	l.t.Helper()
	out, err := exec.Command(muster, "status", l.app, "--state-dir", filepath.Join(l.top, "s0"), "--registry", "consul://"+l.consul.HTTPAddr, "--json").Output() //nolint:noctx // it ends by itself
	l.must(err)
	l.must(json.Unmarshal(out, &view))
	return view
}

// Two ranks have stored steps, and none that both have: nothing mixed is started, and nothing is lost. What they save then is what
// they go on from.
func TestNothingInCommon(t *testing.T) {
	need.Root(t)
	l := newLab(t, "", settings{"muster.checkpoint.keep": "1"})
	first, second := l.agent(0, 0), l.agent(1, 1)
	l.says(0, 0, "stdout.log", "host h0 generation 1 from \n")
	l.says(1, 1, "stdout.log", "host h1 generation 1 from \n")
	l.save(0, 0, 10)
	l.save(0, 0, 20)
	l.save(1, 1, 15)

	l.fail("h0")
	l.says(0, 0, "stdout.log", "host h0 generation 2 from \n")
	l.says(1, 1, "stdout.log", "host h1 generation 2 from \n")
	const why = "worker-0 has 10 20, worker-1 has 15"
	view := l.status()
	if view.Directive.Resume == nil || *view.Directive.Resume != -1 || view.Directive.FromBeginning != why {
		t.Errorf("the directive says %+v, want %q", view.Directive, why)
	}
	if w := view.Instances[0].Warnings; len(w) != 1 || w[0].Kind != "from-beginning" || !strings.Contains(w[0].Text, why) {
		t.Errorf("worker-0's warnings are %+v, want one with %q", w, why)
	}
	if events := l.read(l.log(0, 0, "events.jsonl")); strings.Count(events, `"event":"warning"`) != 1 || !strings.Contains(events, why) {
		t.Errorf("events.jsonl does not warn once: %s", events)
	}
	aside := map[string]string{
		"h0/worker-0/saves/.muster-set-aside-g2/ckpt-10": "of h0, generation 1\n", "h0/worker-0/saves/.muster-set-aside-g2/ckpt-20": "of h0, generation 1\n",
		"h1/worker-1/saves/.muster-set-aside-g2/ckpt-15": "of h1, generation 1\n",
	}
	for name, want := range aside {
		if got := l.read(filepath.Join(l.top, name)); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}

	for _, step := range []int{5, 15, 25} { // 15 again, on another branch; keep=1 removes what is older than what both have
		l.save(0, 0, step)
		l.save(1, 1, step)
	}
	l.fail("h1")
	l.says(0, 0, "stdout.log", "host h0 generation 3 from ckpt-25\n")
	l.says(1, 1, "stdout.log", "host h1 generation 3 from ckpt-25\n")
	if w := l.status().Instances[0].Warnings; len(w) != 0 {
		t.Errorf("worker-0 still warns: %+v", w)
	}
	l.await("the store as it is in the end", func() bool {
		return cmp.Equal([]string{"set-aside-g2/step-10-g1", "set-aside-g2/step-20-g1", "step-25-g2"}, stepsIn(l, "worker-0")) &&
			cmp.Equal([]string{"set-aside-g2/step-15-g1", "step-25-g2"}, stepsIn(l, "worker-1"))
	})
	l.must(os.WriteFile(l.control("end"), nil, 0o600))
	if a, b := l.ends(first), l.ends(second); a != 0 || b != 0 {
		t.Errorf("the agents ended with %d and %d", a, b)
	}
}

// stepsIn are the checkpoints of an instance in a store's files, without incarnations.
func stepsIn(l *lab, instance string) []string {
	var all []string
	for name := range l.tree(filepath.Join(l.store, l.app, instance)) {
		if dir, ok := strings.CutSuffix(name, "/manifest.json"); ok {
			all = append(all, dir[:strings.LastIndexByte(dir, '-')])
		}
	}
	slices.Sort(all)
	return all
}

// What is in folders counts before the store has it: two ranks of which one saves faster, with no store at all.
func TestFoldersWithoutAStore(t *testing.T) {
	need.Root(t)
	l := newLab(t, "", settings{"muster.checkpoint.sync": ""})
	first, second := l.agent(0, 0), l.agent(1, 1)
	l.says(0, 0, "stdout.log", "host h0 generation 1 from \n")
	l.says(1, 1, "stdout.log", "host h1 generation 1 from \n")
	for host, steps := range [][]int{{10, 20, 30}, {10, 20}} {
		for _, step := range steps {
			l.order(host, step)
			l.says(host, host, "stdout.log", "saved "+strconv.Itoa(step)+"\n")
		}
	}
	l.fail("h1")
	l.says(0, 0, "stdout.log", "host h0 generation 2 from ckpt-20\n")
	l.says(1, 1, "stdout.log", "host h1 generation 2 from ckpt-20\n")
	l.must(os.WriteFile(l.control("end"), nil, 0o600))
	if a, b := l.ends(first), l.ends(second); a != 0 || b != 0 {
		t.Errorf("the agents ended with %d and %d", a, b)
	}
}

// A copy that one rank has stored for all is damaged in the store, and another finds it: all pass it over, and go on from the one
// before, the rank too that stored it and has it whole in its folder.
func TestDamagedCopyOfAnother(t *testing.T) {
	need.Root(t)
	l := newLab(t, "", settings{"muster.checkpoint.dir": ""})
	first, second := l.agent(0, 0), l.agent(1, 1)
	l.says(0, 0, "stdout.log", "host h0 generation 1 from \n")
	l.says(1, 1, "stdout.log", "host h1 generation 1 from \n")
	l.save(0, 0, 10)
	l.save(0, 0, 20)
	damaged, err := filepath.Glob(filepath.Join(l.store, l.app, "worker-0", "step-20-*", "files", "ckpt-20"))
	l.must(err)
	l.must(os.WriteFile(damaged[0], []byte("of h0, generation 7\n"), 0o600))

	l.fail("h1")
	l.says(1, 1, "agent.log", `msg="stored checkpoint skipped"`)
	l.says(0, 0, "stdout.log", "host h0 generation 3 from ckpt-10\n")
	l.says(1, 1, "stdout.log", "host h1 generation 3 from ckpt-10\n")
	if got := l.read(l.log(1, 1, "stdout.log")); strings.Contains(got, "ckpt-20") {
		t.Errorf("worker-1 went on from the damaged copy: %s", got)
	}
	l.save(0, 0, 20) // again, as it is reached again
	l.fail("h0")
	l.says(0, 0, "stdout.log", "host h0 generation 4 from ckpt-20\n")
	l.says(1, 1, "stdout.log", "host h1 generation 4 from ckpt-20\n")
	l.must(os.WriteFile(l.control("end"), nil, 0o600))
	if a, b := l.ends(first), l.ends(second); a != 0 || b != 0 {
		t.Errorf("the agents ended with %d and %d", a, b)
	}
}

// Two hosts see one folder, and each has an agent that copies what is in it: neither takes the other's copy away or writes to it,
// and a start finds each step whole, from the folder and, where that is lost, from the store that both bring it back from at once.
func TestFolderOfTwoHosts(t *testing.T) {
	need.Root(t)
	dir := folder.OfAll(t, folder.Temp(t, "mc-"))
	l := newLab(t, "", settings{"muster.checkpoint.dir": dir, "muster.checkpoint.keep": "2"})
	l.shared = dir
	first, second := l.agent(0, 0), l.agent(1, 1)
	l.says(0, 0, "stdout.log", "host h0 generation 1 from \n")
	l.says(1, 1, "stdout.log", "host h1 generation 1 from \n")
	committed := func(step int) {
		l.await("step "+strconv.Itoa(step)+" in the registry", func() bool {
			return strings.Contains(l.kv("checkpoint/worker/0")+l.kv("checkpoint/worker/1"), `{"step":`+strconv.Itoa(step)+",")
		})
	}
	for step := 10; step <= 60; step += 10 {
		l.order(step/10%2, step)
		committed(step)
	}
	l.fail("h1")
	l.says(0, 0, "stdout.log", "host h0 generation 2 from ckpt-60\n")
	l.says(1, 1, "stdout.log", "host h1 generation 2 from ckpt-60\n")
	for name := range l.tree(dir) {
		l.must(os.Remove(filepath.Join(dir, name)))
	}
	l.fail("h0")
	l.says(0, 0, "stdout.log", "host h0 generation 3 from ckpt-60\n")
	l.says(1, 1, "stdout.log", "host h1 generation 3 from ckpt-60\n")
	if got := l.read(filepath.Join(dir, "ckpt-60")); got != "of h0, generation 1\n" {
		t.Errorf("brought back: %q, want what host 0 saved", got)
	}
	stored := l.tree(filepath.Join(l.store, l.app))
	whole := 0
	for name, text := range stored {
		dir, ok := strings.CutSuffix(name, "/manifest.json")
		if !ok {
			continue
		}
		whole++
		var m struct {
			Instance string
			Files    []struct{ Path, SHA256 string }
		}
		l.must(json.Unmarshal([]byte(text), &m))
		sum := sha256.Sum256([]byte(stored[dir+"/files/"+m.Files[0].Path]))
		if m.Instance != filepath.Dir(dir) || m.Files[0].SHA256 != hex.EncodeToString(sum[:]) {
			t.Errorf("%s: its manifest is of %s, and its file is not as stored", dir, m.Instance)
		}
	}
	if whole < 2 {
		t.Errorf("%d checkpoints are in the store, want the newest two at least", whole)
	}
	l.must(os.WriteFile(l.control("end"), nil, 0o600))
	if a, b := l.ends(first), l.ends(second); a != 0 || b != 0 {
		t.Errorf("the agents ended with %d and %d", a, b)
	}
}
