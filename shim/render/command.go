package render

import (
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/muster-agent/muster/shim/launcher"
)

// command is the agent's command line without its first word; an empty component lets it claim one, or be told by the
// launcher.
func (w *writer) command(component string, window time.Duration) []string {
	words := []string{"agent", "--app", w.o.App, "--app-id", w.o.AppID, "--run", w.o.Run}
	if component != "" {
		words = append(words, "--component", component)
	}
	if w.o.Registry != "" {
		words = append(words, "--registry", w.o.Registry)
	}
	words = append(words, "--kill-window", spanText(window), "--exit-code-map", launcher.ExitMap)
	return slices.Concat(words, w.o.AppFlags, w.o.AgentFlags)
}

// runAt is where the run id stands in a command: a launcher that counts its own attempts names a new run in its place.
const runAt = 6

// longestRun is what such a run id may be long: a dash and a digit come behind it.
const longestRun = 63 - len("-9")

// remote tells that the binary is brought by the launcher.
func remote(binary string) bool {
	u, err := url.Parse(binary)
	return err == nil && u.Scheme != "" && u.Scheme != "file"
}

// binaryName is what a brought binary is called in the task's folder.
const binaryName = "muster"

// local is where the binary lies: its path, or where the launcher has put it in the folder that the agent is started in.
func (w *writer) local(folder string) string {
	if remote(w.o.Binary) {
		return path.Join(folder, binaryName)
	}
	return strings.TrimPrefix(w.o.Binary, "file://")
}
