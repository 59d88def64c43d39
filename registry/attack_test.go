package registry_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"testing"

	"github.com/muster-agent/muster/registry"
)

// zeros has no end.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// Where Consul has no ACL, a stranger's roster is a few bytes that unpack to all memory of the agents.
func TestAttackRosterWithoutEnd(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := io.CopyN(w, zeros{}, 64<<20); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	most := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			_, _, err := registry.Unpack(registry.RosterRef{ID: "1-a", Chunks: 1, Bytes: 1 << 40}, packed.Bytes())
			if !errors.Is(err, registry.ErrRosterDiffers) {
				b.Fatal(err)
			}
		}
	}).AllocedBytesPerOp()
	if most > 1<<20 {
		t.Errorf("%d bytes were unpacked", most)
	}
}
