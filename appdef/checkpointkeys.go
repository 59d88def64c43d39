package appdef

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Who accesses a checkpoint folder in a store.
const (
	reachAuto    = "auto"    // the process if it can, else muster
	ReachProcess = "process" // the process gets the URL
	ReachMuster  = "muster"  // the process gets a local folder, which muster copies to the store
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

// Whole is when a match of muster.checkpoint.pattern is a complete checkpoint, besides that it exists and is not empty.
type Whole struct {
	Files  []string      // globs: a folder has a file of each that is not empty
	Size   int64         // least number of bytes of all its files
	Steady time.Duration // nothing in it has changed for this long
}

// ParseWhole reads muster.checkpoint.whole: words with blanks between them, `files=GLOB` (any number of times),
// `size=BYTES`, `steady=DURATION`. It returns false for any other word or value.
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
			var steady Seconds
			steady, err = ParseDuration(value)
			w.Steady = steady.Duration()
		default:
			return Whole{}, false
		}
		if err != nil || w.Size < 0 {
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

// checkMarker checks that the marker is inside the checkpoint folder.
func checkMarker(text string) error {
	if text == "" || path.IsAbs(text) || slices.Contains(strings.Split(text, "/"), "..") {
		return wanted{want: "a name such as DONE, .done or {}/_SUCCESS"}
	}
	return nil
}

func checkpointKeys() []Key {
	return []Key{
		{
			Name: "muster.checkpoint.dir", Default: "a folder that the app's instances share",
			Meaning:   "where the app writes its checkpoints: a folder, or the URL of one in a store",
			component: func(c *Component, _, text string) error { return setText(&c.Settings.Checkpoint.Dir, text) },
		},
		{
			Name: "muster.checkpoint.pattern", Default: "the framework's pattern",
			Meaning: "the file names of a checkpoint, as a glob",
			component: func(c *Component, _, text string) error {
				c.Settings.Checkpoint.Pattern = text
				if text == "" || !globOK(text) {
					return wanted{want: "a glob such as ckpt-*.json"}
				}
				return nil
			},
		},
		{
			Name: "muster.checkpoint.reach", Default: "auto", Values: []string{"auto", "process", "muster"},
			Meaning: "who accesses a muster.checkpoint.dir in a store. process: the process gets the URL; muster: " +
				"the process gets a local folder, which muster copies; auto: process for TensorFlow with libhdfs, " +
				"else muster",
			component: func(c *Component, _, text string) error { return setReach(&c.Settings.Checkpoint, text) },
		},
		{
			Name: "muster.checkpoint.whole",
			Meaning: "when a match of the pattern is a complete checkpoint: conditions with blanks between them, " +
				"files=GLOB (in a folder), size=BYTES, steady=DURATION",
			component: func(c *Component, _, text string) error {
				c.Settings.Checkpoint.Whole = text
				return checkWhole(text)
			},
		},
		{
			Name: "muster.checkpoint.marker",
			Meaning: "the file that marks a checkpoint as complete: a name inside its folder, a suffix of its file " +
				"name, or a path with {} for the match",
			component: func(c *Component, _, text string) error {
				c.Settings.Checkpoint.Marker = text
				return checkMarker(text)
			},
		},
		{
			Name: "muster.checkpoint.sync",
			Meaning: "the URL of the store to which muster copies each complete checkpoint, and from which another " +
				"host downloads it",
			component: func(c *Component, _, text string) error { return setText(&c.Settings.Checkpoint.Sync, text) },
		},
		{
			Name: "muster.checkpoint.keep", Default: "all",
			Meaning: "how many checkpoints of each instance the store keeps; 0: all",
			component: func(c *Component, _, text string) (err error) {
				c.Settings.Checkpoint.Keep, err = atLeast(0, text)
				return err
			},
		},
		{
			Name: "muster.checkpoint.signal",
			Meaning: "the signal that asks the app for a checkpoint before a planned stop; the stop then waits for " +
				"a newer checkpoint within the grace",
			component: func(c *Component, _, text string) (err error) {
				c.Settings.Checkpoint.Signal, err = wantSignal(text)
				return err
			},
		},
		{
			Name: "muster.checkpoint.ranks", Default: "auto", Values: []string{"auto", "all", "some", "each"},
			Meaning: "which step a gang resumes from. all: the newest step that all instances have; some: the " +
				"newest step that all instances with any checkpoint have; each: each instance from its own newest; " +
				"auto: all if several instances of the component write checkpoints, else some",
			component: func(c *Component, _, text string) error { return setRanks(&c.Settings.Checkpoint, text) },
		},
	}
}
