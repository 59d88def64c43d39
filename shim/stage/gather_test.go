package stage

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
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
			left, err := Gathering{Store: local(t), Dir: dir, Part: tt.part}.Run(t.Context(), from)
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
		said := strings.ReplaceAll(someText(random)+someText(random), "\r", "")
		part, dir := 1+random.Int64N(300), t.TempDir()
		if _, err := (Gathering{Store: local(t), Dir: dir, Part: part}).Run(t.Context(), strings.NewReader(said)); err != nil {
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
	if _, err := (Gathering{Store: local(t), Dir: dir}).Run(t.Context(), iotest.ErrReader(errBroken)); !errors.Is(err, errBroken) {
		t.Errorf("broken pipe: got %v", err)
	}
	if _, err := (Gathering{Store: local(t), Dir: dir}).Run(t.Context(), strings.NewReader("x")); !errors.Is(err, os.ErrExist) || !strings.Contains(err.Error(), "part-r.gz") {
		t.Errorf("there already: got %v", err)
	}
}
