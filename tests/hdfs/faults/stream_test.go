package faults

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"path"
	"strings"
	"testing"

	"github.com/muster-agent/muster/shim/data"
	"github.com/muster-agent/muster/shim/data/stream"
	"github.com/muster-agent/muster/shim/data/transfer"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/store/storetest"
)

// streams are fed and gathered while the cluster loses parts: nothing of them is missing, and nothing comes twice.
func (l lab) streams(t *testing.T) {
	var b strings.Builder
	for i := range 400_000 {
		fmt.Fprintf(&b, "%d a line of text\n", i*i)
	}
	text, name := b.String(), path.Join(l.dir, "lines")
	storetest.Put(t, l.Store, name, []byte(text))
	l.FsShell(t, "-setrep", "-w", "2", name) // a writer that has just lost a DataNode leaves it out: of some blocks there may be one copy yet
	dead := -1
	for what, happens := range map[string]func(){
		"a DataNode dies": func() {
			dead = l.wires.last(t, l.Cluster, 3)
			l.KillDataNode(dead)
		},
		"the connections are cut": func() { l.wires.cut(t) },
	} {
		mend := func() {
			if dead >= 0 {
				l.StartDataNode(t, dead)
			}
			dead = -1
		}
		t.Run(what+" while a stream is fed", func(t *testing.T) {
			defer mend()
			l.feed(t, name, text, happens)
		})
		t.Run(what+" while a stream is gathered", func(t *testing.T) {
			defer mend()
			l.gather(t, path.Join(l.dir, strings.ReplaceAll(what, " ", "-")), text, happens, mend)
		})
	}
	t.Run("all DataNodes are away for a moment while a stream is gathered", func(t *testing.T) {
		up := make(chan struct{})
		back := func() { <-up }
		l.gather(t, path.Join(l.dir, "all"), text, func() {
			for i := range 3 {
				l.KillDataNode(i)
			}
			go func() {
				defer close(up)
				for i := range 3 {
					l.StartDataNode(t, i)
				}
			}()
		}, back)
	})
}

// feed has three readers read the lines, one after the other.
func (l lab) feed(t *testing.T, name, want string, happens func()) {
	t.Helper()
	var got bytes.Buffer
	event := &once{after: 5 * mib / 2, do: happens}
	for worker := range 3 {
		share, err := stream.Reading{
			Form: plan.RecordLines, Want: 7, Turn: stream.Turn{Workers: 3, Worker: worker}, Again: transfer.Transfer{}.Persevere,
		}.Share([]transfer.File{{Store: l.Store, Path: name, Size: int64(len(want))}})
		if err != nil {
			t.Fatal(err)
		}
		if err := share.Feed(t.Context(), io.MultiWriter(&got, told(event.tell)), new(stream.Count)); err != nil {
			t.Fatalf("%v\n%s", err, l.told)
		}
	}
	if got.String() != want || !event.done.Load() {
		t.Errorf("fed %d bytes, want %d; something happened: %t", got.Len(), len(want), event.done.Load())
	}
}

// gather writes what is said, and reads it back when the cluster is whole again.
func (l lab) gather(t *testing.T, dir, said string, happens, mend func()) {
	t.Helper()
	event := &once{after: 5 * mib, do: happens}
	again := 0
	how := transfer.Transfer{Again: func(file, why string) { again++; t.Logf("again: %s: %s", file, why) }}
	g := data.Gathering{
		Store: l.Store, Dir: dir, Part: 4 * mib, Beside: root(t, t.TempDir()), Again: how.Persevere, Bare: func(err error) { t.Error(err) },
	}
	left, err := g.Run(t.Context(), io.TeeReader(strings.NewReader(said), told(event.tell)))
	if err != nil {
		t.Fatalf("%v\n%s", err, l.told)
	}
	mend()
	var got bytes.Buffer
	for i := range left.Files {
		zipped := storetest.Get(t, l.Store, path.Join(dir, fmt.Sprintf("part-r-%03d.gz", i)), 0)
		plain, err := gzip.NewReader(bytes.NewReader(zipped))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := got.ReadFrom(plain); err != nil {
			t.Fatal(err)
		}
	}
	if got.String() != said || !event.done.Load() || again == 0 {
		t.Errorf("gathered %d bytes in %d parts, want %d; something happened: %t, written anew %d times", got.Len(), left.Files, len(said), event.done.Load(), again)
	}
}

// told is a writer that tells how much is written.
type told func(string, int64)

func (f told) Write(b []byte) (int, error) {
	f("", int64(len(b)))
	return len(b), nil
}
