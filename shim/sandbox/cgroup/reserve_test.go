package cgroup

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// Two agents whose launchers gave them cgroups of their own in the hierarchies with limits, but not in the others, meet
// there: the second one is refused, and what the first one runs is not touched.
func TestReserve(t *testing.T) {
	tree, err := Discover(Host{})
	if err != nil {
		t.Fatal(err)
	}
	if tree.Mode != Hybrid || !tree.Usable() || os.Geteuid() != 0 {
		return // on v2 there is one hierarchy
	}
	app, instance := "cgroup-test-"+strconv.Itoa(os.Getpid()), "reserve"
	first, err := New(t.Context(), tree, app, instance, Limits{Everywhere: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { removed(t, first) }()
	if len(first.also) == 0 {
		t.Fatal("a hybrid host has hierarchies without limits")
	}
	other := tree
	other.Controllers = maps.Clone(tree.Controllers)
	for _, name := range v1Controllers {
		c := tree.Controllers[name]
		own := filepath.Join(c.Dir, app+"-launcher")
		if err := os.Mkdir(own, 0o755); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := os.Remove(own); err != nil {
				t.Error(err)
			}
		})
		other.Controllers[name] = Controller{Dir: own, Mount: c.Mount}
	}
	refused := func(when string) {
		t.Helper()
		if g, err := New(t.Context(), other, app, instance, Limits{Everywhere: true}); !errors.Is(err, errInUse) {
			t.Errorf("beside another one of the name, %s: %v %v, want %v", when, g, err, errInUse)
		}
	}
	refused("which has yet to start its process")
	p := run(t, first, "as-idle")
	p.line()
	for _, f := range first.also {
		if f.Name() != tree.beside { // a cpuset must be told its processors first, which libcontainer does
			continue
		}
		in, err := f.open(first.below)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(in.write("cgroup.procs", strconv.Itoa(p.Process.Pid)), in.Close()); err != nil {
			t.Fatal(err)
		}
	}
	refused("which runs")
	if pids, err := first.Pids(); err != nil || len(pids) != 1 {
		t.Errorf("processes of the first: %v, %v; want one", pids, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	if err := first.remove(ctx); err != nil {
		t.Fatal(err)
	}
	for _, f := range first.also {
		if _, err := os.Stat(filepath.Join(f.Name(), "muster", app)); err == nil {
			t.Errorf("%s/muster/%s is left", f.Name(), app)
		}
	}
}
