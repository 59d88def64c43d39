package data

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/muster-agent/muster/shim/store"
	"github.com/muster-agent/muster/tests/folder"
)

// gunzipped are the files of a folder without their compression, in their order.
func gunzipped(t *testing.T, dir string) (names []string, texts []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		zipped, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		z, err := gzip.NewReader(bytes.NewReader(zipped))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		names, texts = append(names, e.Name()), append(texts, string(text))
	}
	return names, texts
}

func TestGathering(t *testing.T) {
	for _, tt := range []struct {
		said  string
		part  int64
		names string
		texts []string
	}{
		{"", 0, "part-r.gz", []string{""}},
		{"one\ntwo", 0, "part-r.gz", []string{"one\ntwo\n"}},
		{"one\r\n\n", 0, "part-r.gz", []string{"one\r\n\n"}},
		{"", 4, "part-r-000.gz", []string{""}},
		{"one\ntwo\n3\n4", 4, "part-r-000.gz part-r-001.gz part-r-002.gz", []string{"one\n", "two\n", "3\n4\n"}},
		{"one\n", 4, "part-r-000.gz", []string{"one\n"}},
		{"a long line\nx\n", 4, "part-r-000.gz part-r-001.gz", []string{"a long line\n", "x\n"}},
	} {
		for _, slow := range []bool{false, true} {
			dir := t.TempDir()
			var from io.Reader = strings.NewReader(tt.said)
			if slow {
				from = iotest.OneByteReader(from)
			}
			left, err := Gathering{Store: localStore(t), Dir: dir, Part: tt.part}.Run(t.Context(), from)
			if err != nil {
				t.Errorf("%q: %v", tt.said, err)
				continue
			}
			names, texts := gunzipped(t, dir)
			got, want := strings.Join(texts, ""), strings.Join(tt.texts, "")
			if fmt.Sprint(texts) != fmt.Sprint(tt.texts) || strings.Join(names, " ") != tt.names || got != want || left.Files != len(names) || left.Bytes != int64(len(want)) {
				t.Errorf("%q in parts of %d: got %q in %v, %+v, want %q in %s", tt.said, tt.part, texts, names, left, tt.texts, tt.names)
			}
		}
	}
}

// All that is said is there, whole lines in each part.
func TestGatheringLosesNothing(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for range 10 {
		said := strings.ReplaceAll(someLines(random)+someLines(random), "\r", "")
		part, dir := 1+random.Int64N(300), t.TempDir()
		if _, err := (Gathering{Store: localStore(t), Dir: dir, Part: part}).Run(t.Context(), strings.NewReader(said)); err != nil {
			t.Fatal(err)
		}
		_, texts := gunzipped(t, dir)
		got := strings.Join(texts, "")
		if got != said && got != said+"\n" {
			t.Fatalf("parts of %d: got %q, want %q", part, got, said)
		}
		for _, text := range texts[:len(texts)-1] {
			if text[len(text)-1] != '\n' || int64(len(text)) < part || strings.Contains(text[min(part, int64(len(text))-1)-1:len(text)-1], "\n") && int64(len(text)) > part {
				t.Fatalf("parts of %d: got one of %d: %q", part, len(text), text)
			}
		}
	}
}

func TestGatheringTellsErrors(t *testing.T) {
	dir := t.TempDir()
	if _, err := (Gathering{Store: localStore(t), Dir: dir}).Run(t.Context(), iotest.ErrReader(errGone)); !errors.Is(err, errGone) {
		t.Errorf("broken pipe: got %v", err)
	}
	if _, err := (Gathering{Store: localStore(t), Dir: dir}).Run(t.Context(), strings.NewReader("x")); !errors.Is(err, os.ErrExist) || !strings.Contains(err.Error(), "part-r.gz") {
		t.Errorf("there already: got %v", err)
	}
}

// losing is a store that loses a file under its writer: at some byte of it, or when it is closed.
type losing struct {
	store.Store

	at    []int64 // one for each file that is created, in their order; -1: when it is closed, away: it is not created; none left: never
	begun int
}

const away = -2

type losingFile struct {
	io.WriteCloser

	left int64
	lost bool
}

func (s *losing) Create(ctx context.Context, path string) (io.WriteCloser, error) {
	s.begun++
	if s.begun <= len(s.at) && s.at[s.begun-1] == away {
		return nil, fmt.Errorf("NameNode: %w", store.ErrUnreachable)
	}
	w, err := s.Store.Create(ctx, path)
	if err != nil || s.begun > len(s.at) {
		return w, err
	}
	return &losingFile{WriteCloser: w, left: s.at[s.begun-1]}, nil
}

func (f *losingFile) Write(b []byte) (int, error) {
	if f.left >= 0 && int64(len(b)) > f.left {
		f.lost = true
		return 0, fmt.Errorf("pipeline: %w", store.ErrUnreachable)
	}
	if f.left >= 0 {
		f.left -= int64(len(b))
	}
	return f.WriteCloser.Write(b)
}

func (f *losingFile) Close() error {
	err := f.WriteCloser.Close()
	if f.left < 0 && !f.lost {
		f.lost = true
		return errors.Join(err, fmt.Errorf("complete: %w", store.ErrUnreachable))
	}
	return err
}

// A file that the store loses is written anew, from what was kept on this machine; without that it is an error.
func TestGatheringOutlivesItsStore(t *testing.T) {
	said := noiseOf(1 << 20)
	for _, kept := range []bool{true, false} {
		dir, beside := t.TempDir(), t.TempDir()
		opened := &losing{Store: localStore(t), at: []int64{away, 100_000, away, away, 10, -1, away, 300_000}}
		var bare error
		g := Gathering{Store: opened, Dir: dir, Bare: func(err error) { bare = err }}
		g.Again = func(_ context.Context, _ string, failed int, err error) bool {
			return store.Transient(err) && failed < 5
		}
		if kept {
			g.Beside = folder.Root(t, beside)
		}
		left, err := g.Run(t.Context(), strings.NewReader(said))
		if !kept {
			if !errors.Is(err, store.ErrUnreachable) || opened.begun != 2 {
				t.Errorf("nothing is kept: got %v after %d files", err, opened.begun)
			}
			continue
		}
		names, texts := gunzipped(t, dir)
		if err != nil || bare != nil || len(names) != 1 || texts[0] != said+"\n" || left.Bytes != int64(len(said))+1 || opened.begun != 9 {
			t.Errorf("got %v, %v, %q after %d files", err, bare, names, opened.begun)
		}
		if entries, err := os.ReadDir(beside); err != nil || len(entries) > 0 {
			t.Errorf("left beside: %v, %v", entries, err)
		}
	}
}

// A store that stays away is an error, and no panic; what was kept goes.
func TestGatheringWhereTheStoreStaysAway(t *testing.T) {
	for _, at := range [][]int64{{away, away, away}, {10, away, away, away}, {-1, away, away, away}} {
		beside := t.TempDir()
		g := Gathering{Store: &losing{Store: localStore(t), at: at}, Dir: t.TempDir(), Beside: folder.Root(t, beside)}
		g.Again = func(_ context.Context, _ string, failed int, _ error) bool { return failed < 3 }
		if _, err := g.Run(t.Context(), strings.NewReader("said")); !errors.Is(err, store.ErrUnreachable) {
			t.Errorf("%v: got %v", at, err)
		}
	}
}

// What is kept has a limit; behind it a loss is an error.
func TestGatheringKeepsSoMuch(t *testing.T) {
	said := noiseOf(1 << 20)
	for _, at := range [][]int64{nil, {500_000}} {
		dir := t.TempDir()
		var bare error
		g := Gathering{
			Store: &losing{Store: localStore(t), at: at}, Dir: dir, Beside: folder.Root(t, t.TempDir()), Most: 100_000,
			Bare: func(err error) { bare = err }, Again: func(context.Context, string, int, error) bool { return true },
		}
		_, err := g.Run(t.Context(), strings.NewReader(said))
		if bare == nil || !strings.Contains(bare.Error(), "more than 100000 bytes") || (err != nil) != (at != nil) {
			t.Errorf("lost at %v: got %v, told %v", at, err, bare)
		}
	}
}

// A file that is lost again and again, each time further on, is not given up.
func TestGatheringThatGetsFurther(t *testing.T) {
	var at []int64
	for i := range 20 {
		at = append(at, int64(i)*30_000)
	}
	dir, said := t.TempDir(), noiseOf(1<<20)
	g := Gathering{Store: &losing{Store: localStore(t), at: at}, Dir: dir, Beside: folder.Root(t, t.TempDir())}
	g.Again = func(_ context.Context, _ string, failed int, _ error) bool { return failed < 3 }
	if _, err := g.Run(t.Context(), strings.NewReader(said)); err != nil {
		t.Fatal(err)
	}
	if _, texts := gunzipped(t, dir); texts[0] != said+"\n" {
		t.Errorf("got %d bytes", len(texts[0]))
	}
}
