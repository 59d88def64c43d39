package paireport

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// The markers between which PAI's launcher looks for the report.
const (
	begin = "[PAI_RUNTIME_ERROR_START]"
	end   = "[PAI_RUNTIME_ERROR_END]"
)

// The limits of 0.14, in bytes of text. The agent's log is cut in the middle.
const (
	reasonBytes   = 384
	solutionBytes = 384
	userBytes     = 2048
	runtimeBytes  = 896
)

// The limits of 1.x: bytes of the whole block with its markers, lines of the logs.
const (
	blockBytes    = 4096
	matchedBytes  = 2048
	userLines     = 15
	platformLines = 10
)

// ExitReport is the block that PAI's containers leave: YAML between two lines of markers. The block of version 1.x has
// at most 4096 bytes.
func ExitReport(version string, f Facts) string {
	e := Classify(version, f)
	for _, s := range []*string{&f.Message, &f.Reason, &f.Solution, &f.User, &f.Runtime} {
		*s = strings.ToValidUTF8(*s, "\uFFFD") // as JSON would, but before it is measured
	}
	if version == v05 || version == v14 {
		return block(f.report014(e))
	}
	parts := [3]string{
		tail(lastLines(f.User, userLines), blockBytes), tail(lastLines(f.Runtime, platformLines), blockBytes),
		tail(f.Message, matchedBytes),
	}
	for {
		text := block(f.report1(e, parts[0], parts[1], parts[2]))
		over := len(text) - blockBytes
		if over <= 0 {
			return text
		}
		longest := 0
		for i := range parts {
			if len(parts[i]) > len(parts[longest]) {
				longest = i
			}
		}
		// The end says more than the beginning. One byte may take six in JSON.
		parts[longest] = tail(parts[longest], len(parts[longest])-max(1, over/6))
	}
}

func (f Facts) report014(e Entry) yaml {
	var y yaml
	y.number("exitcode", e.Code)
	y.text("trigger", f.trigger())
	y.text("reason", tail(f.Reason, reasonBytes))
	y.text("solution", tail(f.Solution, solutionBytes))
	y.optional("originalUserExitCode", f.UserCode())
	y.text("dockerStatus", f.status())
	y.text("caughtSignal", f.caught())
	y.text("caughtException", "")
	y.text("matchedUserLogString", "")
	y.section("errorLogs")
	y.nested("user", tail(f.User, userBytes))
	y.nested("runtime", ends(f.Runtime, runtimeBytes))
	y.nested("diskCleaner", "")
	return y
}

func (f Facts) report1(e Entry, user, platform, matched string) yaml {
	var y yaml
	y.number("exitCode", e.Code)
	y.text("trigger", f.trigger())
	y.optional("originUserExitCode", f.UserCode())
	y.text("matchedUserLogString", "")
	y.text("matchedPlatformLogString", matched)
	y.text("matchedGpuInfo", "")
	y.text("caughtException", "")
	y.section("errorLogs")
	y.nested("user", user)
	y.nested("platform", platform)
	return y
}

// trigger names the fact that chose the row.
func (f Facts) trigger() string {
	switch {
	case f.End == ByUser:
		return "stopped by the user"
	case f.End == WithApp:
		return "ended with the job"
	case f.OOM:
		return "out of memory"
	case f.Signal != 0:
		return "signal"
	case f.Code != nil:
		return "exit code"
	}
	return "no process ran"
}

// status is the state of the container as docker would name it.
func (f Facts) status() string {
	switch {
	case f.UserCode() == nil:
		return "created"
	case f.OOM:
		return "OOMKilled"
	}
	return "exited"
}

func (f Facts) caught() string {
	if f.Signal == 0 {
		return ""
	}
	return strconv.Itoa(f.Signal)
}

// yaml writes lines of YAML. Strings are written as JSON strings: YAML reads them, and no text can break out of them.
type yaml struct{ bytes.Buffer }

func (y *yaml) number(key string, n int) { y.WriteString(key + ": " + strconv.Itoa(n) + "\n") }

func (y *yaml) optional(key string, n *int) {
	if n == nil {
		y.WriteString(key + ": null\n")
		return
	}
	y.number(key, *n)
}

func (y *yaml) text(key, s string)   { y.WriteString(key + ": " + quote(s) + "\n") }
func (y *yaml) section(key string)   { y.WriteString(key + ":\n") }
func (y *yaml) nested(key, s string) { y.WriteString("  " + key + ": " + quote(s) + "\n") }

func block(y yaml) string { return begin + "\n" + y.String() + end + "\n" }

// quote is a JSON string. It hides markers, which would end the block.
func quote(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic("a string has no JSON: " + err.Error()) // every one has
	}
	text := strings.TrimSuffix(b.String(), "\n")
	return strings.NewReplacer("[PAI_", `\u005bPAI_`, "\x7f", `\u007f`).Replace(text)
}

// tail is the end of a text, at most that many bytes.
func tail(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[len(s)-max(most, 0):], "")
}

// ends are the beginning and the end of a text, each with that many bytes.
func ends(s string, each int) string {
	if len(s) <= 2*each {
		return s
	}
	return strings.ToValidUTF8(s[:each], "") + "\n" + tail(s, each-1)
}

func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
