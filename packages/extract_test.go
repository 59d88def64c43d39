package packages

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestExtractTakesAllKinds(t *testing.T) {
	items := []item{
		folder("app"), file("app/run", "#!/bin/sh\n"), file("app/a.txt", "a"), link("app/l", "a.txt"), link("app/gone", "none"),
		file("app/sub/x", "x"), link("app/sub/up", "../a.txt"), file("app/Case", "1"), file("app/case", "2"), file("./dot//slash", "d"),
	}
	items[1].mode = 0o6755
	withHard := append([]item{}, items...)
	withHard = append(withHard, hard("app/hard", "./app/a.txt"), file("app/a.txt", "later"))
	for name, text := range map[string][]byte{
		"a.tar": makeTar(t, withHard...), "a.tgz": gz(t, makeTar(t, withHard...)), "a.tar.gz": gz(t, makeTar(t, withHard...)),
		"a.tar.zst": zst(t, makeTar(t, withHard...)), "a.zip": makeZip(t, items...), "0123abcd": makeZip(t, items...),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			archive, out := filepath.Join(dir, name), filepath.Join(dir, "deep", "out")
			must(t, os.WriteFile(archive, text, 0o600))
			done, err := Extract(t.Context(), archive, out, ExtractOptions{})
			must(t, err)
			want := map[string]string{"app/run": "#!/bin/sh\n", "app/l": "a", "app/sub/up": "a", "app/Case": "1", "app/case": "2", "dot/slash": "d"}
			if name != "a.zip" && name != "0123abcd" {
				want["app/l"], want["app/sub/up"], want["app/hard"] = "later", "later", "a"
			}
			for file, text := range want {
				if got, err := os.ReadFile(filepath.Join(out, file)); err != nil || string(got) != text {
					t.Errorf("%s: got %q, %v, want %q", file, got, err, text)
				}
			}
			info, err := os.Stat(filepath.Join(out, "app", "run"))
			if err != nil || info.Mode()&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky) != 0 || info.Mode()&0o111 == 0 {
				t.Errorf("app/run: got %v, %v, want it executable and without setuid", info.Mode(), err)
			}
			left, err := os.ReadDir(filepath.Dir(out))
			if err != nil || len(left) != 1 {
				t.Errorf("got %v, %v beside it, want nothing", left, err)
			}
			if len(done.Digest) != 64 || done.Files < len(items) || done.Bytes == 0 {
				t.Errorf("got %+v", done)
			}
			other := strings.Repeat("0", 64)
			var refused *RefusedError
			_, err = Extract(t.Context(), archive, out+"2", ExtractOptions{Digest: other})
			if !errors.As(err, &refused) || refused.Reason != wrongDigest || !strings.Contains(err.Error(), other) || !strings.Contains(err.Error(), done.Digest) {
				t.Errorf("got %v, want both digests", err)
			}
		})
	}
}

func TestExtractDoesNotMixWithWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	archive, out := filepath.Join(dir, "a.tar"), filepath.Join(dir, "out")
	must(t, os.WriteFile(archive, makeTar(t, file("new", "new")), 0o600))
	must(t, os.Mkdir(out, 0o755)) // empty: as if it were not there
	if _, err := Extract(t.Context(), archive, out, ExtractOptions{}); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, filepath.Join(out, "old"), "old")
	before := snapshot(t, dir)
	if _, err := Extract(t.Context(), archive, out, ExtractOptions{}); !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), "name another") {
		t.Errorf("got %v, want that something is there", err)
	}
	if _, err := Extract(t.Context(), archive, filepath.Join(out, "old"), ExtractOptions{}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("onto a file: got %v, want that something is there", err)
	}
	must(t, os.WriteFile(filepath.Join(dir, "bad.tar"), makeTar(t, file("../x", "")), 0o600))
	before[filepath.Join(dir, "bad.tar")] = snapshot(t, dir)[filepath.Join(dir, "bad.tar")]
	if _, err := Extract(t.Context(), filepath.Join(dir, "bad.tar"), out, ExtractOptions{Replace: true}); !errors.Is(err, ErrRefused) {
		t.Errorf("got %v, want it refused", err)
	}
	if after := snapshot(t, dir); len(after) != len(before) {
		t.Errorf("got %v, want %v", after, before)
	}
	if _, err := Extract(t.Context(), archive, out, ExtractOptions{Replace: true}); err != nil {
		t.Fatal(err)
	}
	names, err := os.ReadDir(out)
	if err != nil || len(names) != 1 || names[0].Name() != "new" {
		t.Errorf("got %v, %v, want new alone", names, err)
	}
}

// What a killed process left is removed by the next; what another is writing is not.
func TestExtractSweepsWhatAKilledOneLeft(t *testing.T) {
	dir := t.TempDir()
	archive, out := filepath.Join(dir, "a.tar"), filepath.Join(dir, "out")
	must(t, os.WriteFile(archive, makeTar(t, file("a", "a")), 0o600))
	mustWrite(t, filepath.Join(dir, ".out.new-1", "whole", "half"), "x")
	busy, err := newScratch(out)
	must(t, err)
	if _, err := os.Stat(filepath.Join(dir, ".out.new-1")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("left of a killed one: got %v, want it gone", err)
	}
	if _, err := Extract(t.Context(), archive, out, ExtractOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(busy.whole()); err != nil {
		t.Errorf("another's: got %v, want it there", err)
	}
	must(t, busy.remove())
}

func TestExtractIsCalledOff(t *testing.T) {
	dir := t.TempDir()
	archive := filepath.Join(dir, "a.tar")
	must(t, os.WriteFile(archive, makeTar(t, file("a", "a")), 0o600))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Extract(ctx, archive, filepath.Join(dir, "out"), ExtractOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want it called off", err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// A zip with links is laid out; one without is read in place.
func TestOpenTakesLinksOfAZip(t *testing.T) {
	archive := filepath.Join(t.TempDir(), "a.zip")
	must(t, os.WriteFile(archive, makeZip(t, file("a/x", "x"), link("a/l", "x")), 0o600))
	t.Setenv("TMPDIR", t.TempDir())
	p, err := Open(archive)
	must(t, err)
	out := t.TempDir()
	must(t, Copy(p, out))
	if to, err := os.Readlink(filepath.Join(out, "l")); err != nil || to != "x" {
		t.Errorf("got %q, %v, want a link to x", to, err)
	}
	must(t, p.Close())
	left, err := os.ReadDir(os.TempDir())
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// What is written into the file after its digest was taken is not read: the digest is of what is.
func TestOpenOwnReadsWhatItHasLookedAt(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", t.TempDir())
	for name, pack := range map[string]func(testing.TB, ...item) []byte{"a.zip": makeZip, "a.tar": makeTar} {
		archive := filepath.Join(dir, name)
		must(t, os.WriteFile(archive, pack(t, file("x", "good"), file("y", "")), 0o600))
		p, err := OpenOwn(archive)
		must(t, err)
		must(t, os.WriteFile(archive, pack(t, file("x", "evil"), file("y", "")), 0o600)) // the same file
		text, err := fs.ReadFile(p, "x")
		if err != nil || string(text) != "good" {
			t.Errorf("%s: got %q, %v, want what the digest is of", name, text, err)
		}
		must(t, p.Close())
	}
	left, err := os.ReadDir(os.TempDir())
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// A pipe in an archive's place is refused, not waited for.
func TestOpenRefusesWhatIsNoFile(t *testing.T) {
	_, err := Open("/dev/null")
	var refused *RefusedError
	if !errors.As(err, &refused) || refused.Reason != notAnArchive || !strings.Contains(err.Error(), "device") {
		t.Errorf("got %v, want it refused as a device", err)
	}
}

// Whatever a file holds, nothing is written elsewhere, no link of one that is taken leads out, and one that is refused
// leaves nothing.
func FuzzExtract(f *testing.F) {
	good := makeTar(f, folder("a"), file("a/b", "text"), link("a/c", "b"), hard("d", "a/b"))
	for _, seed := range [][]byte{
		good, gz(f, good), zst(f, good), makeZip(f, file("a/b", "text"), link("a/c", "b")),
		makeTar(f, file("../b", "x")), makeTar(f, link("a", "b"), link("b", "../..")), makeTar(f, special("x", tar.TypeFifo)),
	} {
		f.Add(seed)
	}
	for _, c := range hostile(f) {
		if len(c.bytes) < 16<<10 {
			f.Add(c.bytes)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		base := canaries(t)
		archive := filepath.Join(t.TempDir(), "archive")
		must(t, os.WriteFile(archive, text, 0o600))
		out := filepath.Join(base, "in", "out")
		before := snapshot(t, base)
		done, err := Extract(t.Context(), archive, out, ExtractOptions{Limits: small})
		after := snapshot(t, base)
		for path := range after {
			if _, there := before[path]; !there && (err != nil || path != out && !strings.HasPrefix(path, out+"/")) {
				t.Fatalf("%s is there although %v", path, err)
			}
		}
		for path, was := range before {
			if after[path] != was {
				t.Fatalf("%s: got %s, want %s", path, after[path], was)
			}
		}
		if err != nil {
			return
		}
		if done.Files > small.Files || done.Bytes > small.Bytes {
			t.Fatalf("got %+v, want it within %+v", done, small)
		}
		noLinkLeadsOut(t, out)
		again, err := Extract(t.Context(), archive, out+"2", ExtractOptions{Limits: small})
		if err != nil || again != done {
			t.Fatalf("again: got %+v, %v, want %+v", again, err, done)
		}
	})
}

func noLinkLeadsOut(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeSymlink == 0 {
			return err
		}
		to, err := filepath.EvalSymlinks(path)
		if err == nil && to != dir && !strings.HasPrefix(to, dir+"/") {
			t.Errorf("%s leads to %s", path, to)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestKindOfContent(t *testing.T) {
	old := makeTar(t, file("a", "x"))
	copy(old[257:], make([]byte, 8)) // the ustar mark, as tars of Unix V7 lack it
	old = summed(old)
	for _, c := range []struct {
		name string
		head []byte
		want kind
	}{
		{"old tar", old, kindTar},
		{"tar of nothing", make([]byte, 10<<10), kindTar},
		{"zstd after a frame to be skipped", append([]byte{0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0}, zst(t, old)...), kindZstd},
		{"empty zip", makeZip(t), kindZip},
		{"short", bytes.Repeat([]byte{0}, 100), ""},
		{"text", []byte("PKzip is not this"), ""},
	} {
		if got, what := kindOfContent(c.head); got != c.want || (got == "") == (what == "") {
			t.Errorf("%s: got %q, %q, want %q", c.name, got, what, c.want)
		}
	}
}
