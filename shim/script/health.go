package script

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Result is how one command ended.
type Result struct {
	Code     *int   // exit code; nil: by a signal, or it was not run
	Why      string // for people: the last line on stderr, the signal, the time-out
	Absent   bool   // the script has no such method
	TimedOut bool
	NotRun   bool // it could not be run: that says nothing of the instance
}

// OK tells whether it ended with 0.
func (r Result) OK() bool { return r.Code != nil && *r.Code == 0 }

// Health is what STATUS has said of one start of an instance. The zero value is that of a start
// which nobody has asked yet.
type Health struct {
	Up       bool // it was up once
	Yes      bool // STATUS has said so
	Deaf     bool // there is no STATUS: the process's life is all that can be seen
	Failures int  // in a row since then
	Why      string
}

// mostFailures in a row are an end: Slider's agent gives up at the second (5.4 of its life cycle).
const mostFailures = 2

// Dead tells that the instance does not serve, though something of it may be there.
func (h Health) Dead() bool { return h.Failures >= mostFailures }

// Cause is the word on a dead instance.
func (h Health) Cause() string {
	return fmt.Sprintf("STATUS failed %d times: %s", h.Failures, h.Why)
}

// Asked takes in the answer of one STATUS. While START is at work and the instance was never up, a
// failure says only that it is not up yet.
func (h Health) Asked(r Result, starting bool) Health {
	switch {
	case r.NotRun:
	case r.Absent:
		h.Up, h.Deaf = true, true
	case r.OK():
		h.Up, h.Yes, h.Failures, h.Why = true, true, 0, ""
	case starting && !h.Up:
	default:
		h.Failures++
		h.Why = r.Why
	}
	return h
}

// Absent reads a script's structured output for the mark that it has no such method.
func Absent(structured []byte) bool {
	var out struct {
		Muster struct {
			Method string `json:"method"`
		} `json:"muster"`
	}
	return json.Unmarshal(structured, &out) == nil && out.Muster.Method == "absent"
}

// LastLine is the last line of what a command wrote that is not blank, at most 200 bytes of it.
func LastLine(text []byte) string {
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	line := strings.TrimSpace(string(lines[len(lines)-1]))
	if len(line) > 200 {
		line = strings.ToValidUTF8(line[:200], "") + "…"
	}
	return line
}
