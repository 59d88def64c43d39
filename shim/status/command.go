package status

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
)

// CommandResult is how a command of the package's scripts ended: the answer of POST /v1/command.
type CommandResult struct {
	Command string `json:"command"`
	Code    *int   `json:"code"` // exit code; null: by a signal or a time-out
	Cause   string `json:"cause,omitempty"`
	// Stdout and Stderr are the last 64 KiB of its output each; Files is the folder with all of it.
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
	Files  string `json:"files,omitempty"`
	// Structured is its answer as JSON; absent: none.
	Structured json.RawMessage `json:"structured,omitempty"`
}

// commandForm is the form of a command's name: one of metainfo's, or a method of a script, in capitals.
var commandForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._-]{0,62}$`)

// command runs a command of the package's scripts and answers when it has ended.
func (s Source) command(w http.ResponseWriter, r *http.Request) {
	var ask struct {
		Command string `json:"command"`
	}
	if !decode(w, r, &ask) {
		return
	}
	if !commandForm.MatchString(ask.Command) {
		const want = "a name, such as GET_CONFIG or one of the package's own"
		refuse(w, http.StatusBadRequest, "command "+strconv.Quote(ask.Command), want)
		return
	}
	if s.Command == nil {
		const hint = "a package with a commandScript or commands has commands"
		refuse(w, http.StatusConflict, "no script runs this instance", hint)
		return
	}
	result, err := s.Command(r.Context(), ask.Command)
	if err != nil {
		refuse(w, http.StatusConflict, err.Error(), "GET /v1/state says what the instance is doing")
		return
	}
	answer(w, result)
}

// Command has the instance run a command of its package's scripts, and waits for its end.
func (c *Client) Command(ctx context.Context, command string) (CommandResult, error) {
	var result CommandResult
	err := c.call(ctx, http.MethodPost, "/v1/command", map[string]string{"command": command}, &result)
	return result, err
}
