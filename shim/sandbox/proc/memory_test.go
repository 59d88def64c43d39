package proc

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestParseMemory(t *testing.T) {
	for text, want := range map[string]int64{
		"55d0-7ffd ---p 0 00:00 0 [rollup]\nRss:  900 kB\nPss:                1234 kB\nPss_Dirty: 5 kB\n": 1234 << 10,
		"": 0, "Rss: 1 kB\n": 0,
	} {
		if got, err := parsePss(text); got != want || err != nil {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
	}
	if got, err := parsePss("Pss: many kB\n"); err == nil {
		t.Errorf("no number: %d", got)
	}
	if got, err := parseResident("100 25 3 1 0 40 0\n", 4096); got != 25*4096 || err != nil {
		t.Errorf("statm: %d, %v", got, err)
	}
	for _, text := range []string{"", "1", "1 x"} {
		if got, err := parseResident(text, 4096); err == nil {
			t.Errorf("%q: %d", text, got)
		}
	}
}

func TestProportionalIsThatOfTheGuardsTree(t *testing.T) {
	// 2 is the guard; 3 may be read, 4 only its statm, 5 is no relative, 6 is a zombie, 7 ends between two files.
	h := fixture(t, stat(1, 0, 1, 1, "S"), stat(2, 1, 2, 1, "S"), stat(3, 2, 3, 1, "S"), stat(4, 3, 4, 1, "S"),
		stat(5, 1, 5, 1, "S"), stat(6, 2, 6, 1, "Z"), stat(7, 2, 7, 1, "S"))
	for path, text := range map[string]string{
		"2/smaps_rollup": "Pss: 1000 kB\n", "3/smaps_rollup": "Pss: 30 kB\n", "4/statm": "9 5 0 0 0 0 0\n", "5/smaps_rollup": "Pss: 7000 kB\n",
		"6/smaps_rollup": "Pss: 9000 kB\n",
	} {
		if err := os.WriteFile(filepath.Join(h.Root, "proc", path), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := h.Memory(2); got != 30<<10+5*int64(os.Getpagesize()) || err != nil {
		t.Errorf("%d, %v", got, err)
	}
}

func TestCPUIsThatOfTheGuardsTree(t *testing.T) {
	// 2 is the guard, 3 and 4 its descendants, 5 is no relative; utime, stime, cutime and cstime are 1 to 4 ticks.
	var lines []string
	for _, parents := range []string{"1 0", "2 1", "3 2", "4 3", "5 1"} {
		pid, parent, _ := strings.Cut(parents, " ")
		lines = append(lines, pid+" (x) S "+parent+" 2 3 0 -1 0 0 0 0 0 1 2 3 4 20 0 1 0 77")
	}
	h := fixture(t, lines...)
	if got, err := h.CPU(2); got != 300*time.Millisecond || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}
