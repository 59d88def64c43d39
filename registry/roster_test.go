package registry_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/muster-agent/muster/registry"
)

func TestPackUnpack(t *testing.T) {
	r := registry.Roster{Version: 1, Run: "r", Gen: 3}
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range 20_000 {
		r.Rows = append(r.Rows, registry.Row{
			Instance: registry.Instance{Component: "worker", Index: i}, Rank: i, Inc: fmt.Sprintf("%016x%016x", rng.Uint64(), rng.Uint64()), Addr: fmt.Sprintf("h%d:2000", i),
		})
	}
	p, err := registry.Pack(r)
	if err != nil {
		t.Fatal(err)
	}
	if p.Ref.Chunks != len(p.Chunks) || len(p.Chunks) < 2 || p.Ref.ID[:2] != "3-" || len(p.Ref.ID) != 14 {
		t.Errorf("got ref %+v, %d chunks", p.Ref, len(p.Chunks))
	}
	for i, c := range p.Chunks {
		if len(c) > 350_000 || len(c) == 0 {
			t.Errorf("chunk %d has %d bytes", i, len(c))
		}
	}
	got, text, err := registry.Unpack(p.Ref, bytes.Join(p.Chunks, nil))
	if err != nil || !reflect.DeepEqual(got, r) || !bytes.Equal(text, p.JSON) {
		t.Fatalf("unpacked: %v", err)
	}
	other, err := registry.Pack(registry.Roster{Version: 1, Run: "r", Gen: 3, Rows: r.Rows[:1]})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := registry.Unpack(p.Ref, bytes.Join(other.Chunks, nil)); !errors.Is(err, registry.ErrRosterDiffers) {
		t.Errorf("another roster: got %v", err)
	}
	if _, _, err := registry.Unpack(other.Ref, bytes.Join(p.Chunks, nil)); !errors.Is(err, registry.ErrRosterDiffers) {
		t.Errorf("a larger roster: got %v", err)
	}
	if _, _, err := registry.Unpack(p.Ref, p.Chunks[0]); err == nil {
		t.Error("half a roster: got no error")
	}
}

func TestParseInstance(t *testing.T) {
	for _, tc := range []struct {
		text string
		want registry.Instance
		ok   bool
	}{
		{"worker-1", registry.Instance{Component: "worker", Index: 1}, true},
		{"a-b-12", registry.Instance{Component: "a-b", Index: 12}, true},
		{"worker", registry.Instance{}, false},
		{"-1", registry.Instance{}, false},
		{"worker-x", registry.Instance{}, false},
		{"worker--1", registry.Instance{Component: "worker-", Index: 1}, true},
	} {
		got, err := registry.ParseInstance(tc.text)
		if got != tc.want || (err == nil) != tc.ok {
			t.Errorf("%s: got %v, %v", tc.text, got, err)
		}
		if tc.ok && got.String() != tc.text {
			t.Errorf("%s prints as %s", tc.text, got)
		}
	}
}

// TestRepackedByAnotherBuild: a roster of a later build is packed again as it was, by a build that does not know all
// of it.
func TestRepackedByAnotherBuild(t *testing.T) {
	ours, err := registry.Pack(registry.Roster{Version: 1, Run: "r", Gen: 3, Rows: []registry.Row{{Rank: 0, Inc: "i"}}})
	if err != nil {
		t.Fatal(err)
	}
	theirs := bytes.Replace(ours.JSON, []byte(`"inc"`), []byte(`"novel":1,"inc"`), 1)
	sum := sha256.Sum256(theirs)
	ref := registry.RosterRef{ID: "3-x", Chunks: 1, Bytes: len(theirs), SHA256: hex.EncodeToString(sum[:])}
	chunks, err := ref.Repack(theirs)
	if err != nil {
		t.Fatal(err)
	}
	if r, text, err := registry.Unpack(ref, bytes.Join(chunks, nil)); err != nil || !bytes.Equal(text, theirs) || r.Rows[0].Inc != "i" {
		t.Errorf("%+v, %s, %v", r, text, err)
	}
	if _, err := ref.Repack(ours.JSON); !errors.Is(err, registry.ErrRosterDiffers) {
		t.Errorf("another roster: %v", err)
	}
}

// TestVerifyPacked: packed bytes are checked by a digest of their own, or unpacked where the reference is of an older
// build.
func TestVerifyPacked(t *testing.T) {
	p, err := registry.Pack(rosterOf(300))
	if err != nil {
		t.Fatal(err)
	}
	packed := bytes.Join(p.Chunks, nil)
	older := p.Ref
	older.Packed = ""
	for name, ref := range map[string]registry.RosterRef{"now": p.Ref, "an older build's": older} {
		if err := ref.Verify(packed); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for at := range len(packed) {
			forged := bytes.Clone(packed)
			forged[at] ^= 0x10
			// The header of gzip, ten bytes, has some that change nothing.
			if err := ref.Verify(forged); !errors.Is(err, registry.ErrRosterDiffers) && at >= 10 {
				t.Fatalf("%s: byte %d changed: %v", name, at, err)
			}
		}
		if err := ref.Verify(packed[:len(packed)/2]); !errors.Is(err, registry.ErrRosterDiffers) {
			t.Errorf("%s: half of it: %v", name, err)
		}
	}
}
