package appdef

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Who reaches a folder of checkpoints that is in a store.
const (
	reachAuto    = "auto"    // the process where it can, else muster
	ReachProcess = "process" // it is told the URL
	ReachMuster  = "muster"  // it is told a local folder, from which everything is copied there
)

func setReach(c *Checkpoint, text string) error {
	c.Reach = text
	if !slices.Contains([]string{reachAuto, ReachProcess, ReachMuster}, text) {
		return wanted{want: "auto, process or muster"}
	}
	return nil
}

func setRanks(c *Checkpoint, text string) error {
	c.Ranks = text
	if !slices.Contains([]string{"auto", "all", "some", "each"}, text) {
		return wanted{want: "auto, all, some or each"}
	}
	return nil
}

// Whole is when a match of muster.checkpoint.pattern counts, beyond that it is there and not empty.
type Whole struct {
	Files  []string      // globs: a folder has a file of each that is not empty
	Size   int64         // bytes, at least, of all its files
	Steady time.Duration // nothing of it has changed for so long
}

// ParseWhole reads muster.checkpoint.whole: words with blanks between them, `files=GLOB` (any number of times),
// `size=BYTES`, `steady=DURATION`. False: one of them is none of these, or has no such value.
func ParseWhole(text string) (Whole, bool) {
	var w Whole
	for word := range strings.FieldsSeq(text) {
		name, value, _ := strings.Cut(word, "=")
		var err error
		switch name {
		case "files":
			if w.Files = append(w.Files, value); value == "" || !globOK(value) {
				return Whole{}, false
			}
		case "size":
			w.Size, err = strconv.ParseInt(value, 10, 64)
		case "steady":
			w.Steady, err = time.ParseDuration(value)
		default:
			return Whole{}, false
		}
		if err != nil || w.Size < 0 || w.Steady < 0 {
			return Whole{}, false
		}
	}
	return w, true
}

// checkWhole checks muster.checkpoint.whole.
func checkWhole(text string) error {
	_, good := ParseWhole(text)
	if !good || strings.TrimSpace(text) == "" {
		return wanted{want: "files=GLOB, size=BYTES, steady=DURATION with blanks between them"}
	}
	return nil
}

// checkMarker: it is within the folder of the checkpoints.
func checkMarker(text string) error {
	if text == "" || path.IsAbs(text) || slices.Contains(strings.Split(text, "/"), "..") {
		return wanted{want: "a name such as DONE, .done or {}/_SUCCESS"}
	}
	return nil
}
