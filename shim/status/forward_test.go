package status

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// through is a client of an agent by way of a server that forwards its API.
func through(t *testing.T, agent *Client) *Client {
	t.Helper()
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		agent.Forward(w, r, strings.TrimPrefix(r.URL.EscapedPath(), "/front"))
	}))
	t.Cleanup(front.Close)
	c := Through(front.URL+"/front", "d1/worker-1", clientOf(&http.Transport{}))
	t.Cleanup(c.Close)
	return c
}

// A program that is run through another server has its input, its terminal's size, signals, output and end.
func TestForwardExec(t *testing.T) {
	a := serve(t)
	input := strings.Repeat("0123456789abcdef", 3*execWindow/16)
	runs(a, func(p *program, in io.Reader, out, errs io.Writer) ExecExit {
		fmt.Fprintln(out, "size", <-p.sizes, "signal", <-p.signals)
		n, err := io.Copy(out, in)
		fmt.Fprintln(errs, n, err)
		return ExecExit{Code: 7}
	})
	resize, signals := make(chan ExecSize, 1), make(chan int, 1)
	resize <- ExecSize{50, 132}
	signals <- 2
	var out, errs bytes.Buffer
	x, err := through(t, a.client).Exec(patience(t), ExecRequest{Argv: []string{"cat"}, Stdin: true, Terminal: &ExecSize{24, 80}},
		ExecStreams{Stdin: strings.NewReader(input), Stdout: &out, Stderr: &errs, Resize: resize, Signals: signals})
	if err != nil || x != (ExecExit{Code: 7}) || out.String() != "size {50 132} signal 2\n"+input || errs.String() != fmt.Sprintln(len(input), nil) {
		t.Errorf("%+v, %v, %d bytes, %q", x, err, out.Len(), errs.String())
	}
}

// Who leaves hangs up on the program.
func TestForwardHangsUp(t *testing.T) {
	a := serve(t)
	p := runs(a, func(p *program, _ io.Reader, out, _ io.Writer) ExecExit {
		fmt.Fprintln(out, "runs")
		<-p.closed
		return ExecExit{}
	})
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(patience(t))
	_, err := through(t, a.client).Exec(ctx, ExecRequest{Argv: []string{"sleep"}}, ExecStreams{Stdout: writer(func([]byte) { cancel(why) })})
	if !errors.Is(err, why) {
		t.Errorf("got %v, want %v", err, why)
	}
	select {
	case <-p.closed:
	case <-patience(t).Done():
		t.Error("nobody hung up")
	}
}

// What a caller shows to the server that forwards is not shown to the agent, which knows that server.
func TestForwardShowsItself(t *testing.T) {
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s %q %q %q", r.Method, r.URL, r.Header.Get("Authorization"), r.Header.Get(grantHeader), r.Header.Get("Cookie"))
	}))
	defer agent.Close()
	known := (&Client{base: agent.URL, token: token, http: clientOf(&http.Transport{})}).Acting("a-grant", func() {})
	r := httptest.NewRequest(http.MethodGet, "/front?offset=1", nil)
	r.Header.Set("Authorization", "Bearer of-a-user")
	r.Header.Set("Cookie", "of=a-browser")
	r.Header.Set(grantHeader, "another")
	w := httptest.NewRecorder()
	known.Forward(w, r, "/v1/logs/events")
	if want := `GET /v1/logs/events?offset=1 "Bearer ` + token + `" "a-grant" ""`; w.Body.String() != want {
		t.Errorf("got %s, want %s", w.Body, want)
	}
}

// An agent that does not answer is named.
func TestForwardToNobody(t *testing.T) {
	agent := Dial(t.TempDir() + "/none.sock")
	if err := through(t, agent).Signal(patience(t), "KILL"); err == nil || !strings.Contains(err.Error(), "none.sock") {
		t.Error(err)
	}
}
