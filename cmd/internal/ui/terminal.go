package ui

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/status"
)

// mostTerminals is how many are open at a time.
const mostTerminals = 64

// terminals are the shells that browsers have open: the answer of one request is a shell's output, others bring its
// input. A shell whose browser is gone gets a hangup.
type terminals struct {
	mu  sync.Mutex
	all map[string]*terminal
}

type terminal struct {
	user   string
	typed  *typed
	resize chan status.ExecSize
}

// typed is what goes to a shell: a reader takes the text of one request after the other, when the shell reads. A
// request that is given up before takes its text with it.
type typed struct {
	next chan string
	over chan struct{} // closed when the shell has ended
	rest string
}

func (t *typed) Read(b []byte) (int, error) {
	if t.rest == "" {
		select {
		case t.rest = <-t.next:
		case <-t.over:
			return 0, io.EOF
		}
	}
	n := copy(b, t.rest)
	t.rest = t.rest[n:]
	return n, nil
}

// enter returns when the shell's reader has the text; a shell that does not read holds the user's own requests alone.
func (t *typed) enter(ctx context.Context, text string) error {
	if text == "" {
		return nil
	}
	select {
	case t.next <- text:
		return nil
	case <-t.over:
		return errClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

var errClosed = exit.Usagef("this terminal is closed")

var errTooMany = fmt.Errorf("%d terminals are open: close one", mostTerminals)

func (t *terminals) open(one *terminal) (id string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.all) >= mostTerminals {
		return "", errTooMany
	}
	if t.all == nil {
		t.all = map[string]*terminal{}
	}
	id = rand.Text()
	t.all[id] = one
	return id, nil
}

func (t *terminals) close(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.all, id)
}

// of is a terminal of a user; nil: there is none.
func (t *terminals) of(id, user string) *terminal {
	t.mu.Lock()
	defer t.mu.Unlock()
	if one := t.all[id]; one != nil && one.user == user {
		return one
	}
	return nil
}

// terminalHeader names the terminal to which later requests bring input.
const terminalHeader = "Muster-Terminal"

// shell is the best one that the container has.
const shell = "command -v bash >/dev/null 2>&1 && exec bash -i; exec sh -i"

// terminal runs a shell beside an instance's process, and answers its output until it ends.
func (s *Server) terminal(w http.ResponseWriter, r *http.Request) {
	app, instance := r.PathValue("app"), r.PathValue("instance")
	var size status.ExecSize
	err := errors.Join(s.mayAct(r), exit.With(exit.Usage, appdef.CheckName("app", app)))
	if _, bad := registry.ParseInstance(instance); bad != nil {
		err = errors.Join(err, exit.With(exit.Usage, bad))
	}
	if bad := json.NewDecoder(r.Body).Decode(&size); bad != nil && err == nil {
		err = exit.Usagef("body: %w; want rows and cols", bad)
	}
	s.tellAct(r, err)
	if err != nil {
		refuse(w, err)
		return
	}
	if err := s.runShell(w, r, app+"/"+instance, size); err != nil && r.Context().Err() == nil {
		refuse(w, err)
	}
}

func (s *Server) runShell(w http.ResponseWriter, r *http.Request, instance string, size status.ExecSize) error {
	k, err := s.Lookup(r.PathValue("app"))
	if err != nil {
		return err
	}
	k.Warn, k.Who = io.Discard, callerOf(r.Context()).Name
	_, agent, err := k.Agent(r.Context(), instance)
	if err != nil {
		return err
	}
	defer agent.Close()
	one := &terminal{
		user:  callerOf(r.Context()).Name,
		typed: &typed{next: make(chan string), over: make(chan struct{})}, resize: make(chan status.ExecSize, 1),
	}
	defer close(one.typed.over)
	id, err := s.terminals.open(one)
	if err != nil {
		return err
	}
	defer s.terminals.close(id)
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set(terminalHeader, id)
	out := flusher{w}
	out.flush()
	end, err := agent.Exec(r.Context(), status.ExecRequest{
		Argv: []string{"/bin/sh", "-c", shell}, Env: []string{"TERM=xterm-256color"}, Stdin: true, Terminal: &size,
	}, status.ExecStreams{Stdin: one.typed, Stdout: out, Stderr: out, Resize: one.resize})
	text := "\r\nmuster: the shell has ended, " + strconv.Itoa(end.Code) + "\r\n"
	if err != nil {
		text = "\r\nmuster: " + err.Error() + "\r\n" // the answer has begun
	}
	_, _ = io.WriteString(out, text) // fails when the browser is gone
	return nil
}

// typed brings what a user has typed, and the size of the window.
func (s *Server) typed(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Input string `json:"input"`
		status.ExecSize
	}
	err := s.mayAct(r)
	if err == nil {
		err = exit.With(exit.Usage, json.NewDecoder(r.Body).Decode(&body))
	}
	var one *terminal
	if err == nil {
		if one = s.terminals.of(r.PathValue("id"), callerOf(r.Context()).Name); one == nil {
			err = errClosed
		}
	}
	if err != nil {
		refuse(w, err)
		return
	}
	if body.Rows > 0 && body.Columns > 0 {
		select {
		case <-one.resize: // nobody has taken the last one
		default:
		}
		select {
		case one.resize <- body.ExecSize:
		default: // a newer one came meanwhile
		}
	}
	if err := one.typed.enter(r.Context(), body.Input); err != nil {
		refuse(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
