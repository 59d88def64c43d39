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
	ReachAuto    = "auto"    // the process where it can, else muster
	ReachProcess = "process" // it is told the URL
	ReachMuster  = "muster"  // it is told a local folder, from which everything is copied there
)

func setReach(c *Checkpoint, text string) error {
	c.Reach = text
	if !slices.Contains([]string{ReachAuto, ReachProcess, ReachMuster}, text) {
		return wanted{want: "auto, process or muster"}
	}
	return nil
}

// checkWhole reads muster.checkpoint.whole as whoever looks for checkpoints will.
func checkWhole(text string) error {
	words := strings.Fields(text)
	good := len(words) > 0 && !slices.ContainsFunc(words, func(word string) bool {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "files":
			return !globOK(value) || value == ""
		case "size":
			n, err := strconv.ParseInt(value, 10, 64)
			return err != nil || n < 0
		case "steady":
			d, err := time.ParseDuration(value)
			return err != nil || d < 0
		}
		return true
	})
	if !good {
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
