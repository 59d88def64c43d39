package render

import (
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/muster-agent/muster/shim/launcher"
)

// Command is the agent's command line without its first word; an empty component lets it claim one, or be told by the
// launcher.
func (w *Writer) Command(component string, window time.Duration) []string {
	words := []string{"agent", "--app", w.Options.App, "--app-id", w.Options.AppID, "--run", w.Options.Run}
	if component != "" {
		words = append(words, "--component", component)
	}
	if !w.Options.Registry.IsZero() {
		words = append(words, "--registry", w.Options.Registry.String())
	}
	words = append(words, "--kill-window", SpanText(window), "--exit-code-map", launcher.ExitMap)
	return slices.Concat(words, w.Options.AppFlags, w.Options.AgentFlags)
}

// RunAt is where the run id stands in a command: a launcher that counts its own attempts names a new run in its place.
const RunAt = 6

// LongestRun is what such a run id may be long: a dash and a digit come behind it.
const LongestRun = 63 - len("-9")

// Remote tells that the binary is brought by the launcher.
func Remote(binary string) bool {
	u, err := url.Parse(binary)
	return err == nil && u.Scheme != "" && u.Scheme != "file"
}

// BinaryName is what a brought binary is called in the task's folder.
const BinaryName = "muster"

// HelperName is what a brought muster-gpu is called there, and beside the agent.
const HelperName = "muster-gpu"

// Local is where the binary lies: its path, or where the launcher has put it in the folder that the agent is started
// in.
func (w *Writer) Local(folder string) string {
	if Remote(w.Options.Binary) {
		return path.Join(folder, BinaryName)
	}
	return strings.TrimPrefix(w.Options.Binary, "file://")
}
