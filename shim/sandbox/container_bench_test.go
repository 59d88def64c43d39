package sandbox

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/muster-agent/muster/shim/sandbox/container"
)

// BenchmarkContainerTrue makes a container, runs `true` in it and takes it away. park is the making, with the guard that
// waits; release is from the order to the exec, in a container that was parked before; end is from the exec until
// nothing is left. They are medians: other programs' work makes a mean of little worth.
func BenchmarkContainerTrue(b *testing.B) {
	if ok, why := container.Probe(b.Context()); !ok {
		b.Skip(why)
	}
	tree, dir := tree(b), b.TempDir()
	var park, release, end []time.Duration
	for b.Loop() {
		t0 := time.Now()
		g, err := Container{Tree: tree}.StartGuard(b.Context(), Options{LogDir: filepath.Join(dir, "log"), Confine: Confinement{
			App: "sandboxbench", Instance: "worker-0", Hostname: "worker-0", Dir: filepath.Join(dir, "container"),
		}})
		if err != nil {
			b.Fatal(err)
		}
		t1 := time.Now()
		if _, err := g.Start(Spec{Attempt: 1, Argv: []string{"/bin/true"}, Dir: "/", Env: []string{}}); err != nil {
			b.Fatal(err)
		}
		t2 := time.Now()
		for e := range g.Events() {
			if _, ok := e.(Empty); ok {
				break
			}
		}
		if err := g.Close(); err != nil {
			b.Fatal(err)
		}
		park, release, end = append(park, t1.Sub(t0)), append(release, t2.Sub(t1)), append(end, time.Since(t2))
	}
	for name, all := range map[string][]time.Duration{"park": park, "release": release, "end": end} {
		slices.Sort(all)
		b.ReportMetric(all[len(all)/2].Seconds()*1000, name+"-ms")
	}
}
