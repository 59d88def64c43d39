package bench

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-agent/muster/shim/sandbox"
	"github.com/muster-agent/muster/shim/sandbox/container"
	"github.com/muster-agent/muster/shim/sandbox/subids"
	"github.com/muster-agent/muster/tests/need"
)

// BenchmarkConfined is what confinement costs at a start: create + start + end of `true` with each engine, with and
// without the filter of system calls, with the host's user ids and with a user namespace. The names are
// ENGINE+FILTER+USERNS. The container's image has a folder, so that its layer is mounted with other owners; in the rows
// `copied` it has them on the disk.
func BenchmarkConfined(b *testing.B) {
	need.Root(b)
	k := newBed(b)
	folder := filepath.Join(k.image.Layers[0], "bin")
	program := filepath.Join(folder, "true")
	if err := os.Mkdir(folder, 0o755); err != nil {
		b.Fatal(err)
	}
	if err := os.Link(k.trueProgram(), program); err != nil {
		b.Fatal(err)
	}
	k.image.Entries = []container.Entry{{Name: "bin", Dir: true, Layers: []string{folder}}}
	ids := k.giveIDs(b)
	var all []contender
	for _, e := range k.engines(b) {
		if len(e.root.Layers) > 0 {
			e.argv = "/bin/true"
			e.root = k.image
		}
		for _, filter := range []string{"off", "on"} {
			e.unfiltered = filter == "off"
			host, private := e, e
			private.ids = ids
			host.name, private.name = e.name+"+"+filter+"+host", e.name+"+"+filter+"+private"
			all = append(all, k.whole(host), k.whole(private))
			if len(e.root.Layers) > 0 {
				private.root.Owned, private.name = true, e.name+"+"+filter+"+private, layers copied"
				private.name = strings.ReplaceAll(private.name, " ", "_") // a unit of a benchmark has no space
				all = append(all, k.whole(private))
			}
		}
	}
	compare(b, all, 1, cold)
}

// giveIDs takes a block of subordinate ids, and makes the folders of the bed passable and the log folder theirs.
func (k *bed) giveIDs(b *testing.B) *subids.Map {
	b.Helper()
	pool, err := subids.HostPool()
	if err != nil {
		b.Fatal(err)
	}
	if err := sandbox.TryIDs(pool); err != nil {
		need.Skip(b, "needs user namespaces with subordinate ids: "+err.Error())
	}
	for dir := k.dir; strings.HasPrefix(dir, os.TempDir()+"/"); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o711); err != nil { //nolint:gosec // passable, for the ids
			b.Fatal(err)
		}
	}
	return subids.New(subids.Block{UID: pool.UIDs.First, GID: pool.GIDs.First}, nil, nil)
}
