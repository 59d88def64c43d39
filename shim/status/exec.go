package status

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// ExecRequest is the body of POST /v1/exec.
type ExecRequest struct {
	Argv     []string  `json:"argv"`
	Env      []string  `json:"env,omitempty"` // NAME=VALUE, over the app's own
	Cwd      string    `json:"cwd,omitempty"` // relative to the app's own
	Stdin    bool      `json:"stdin"`         // false: the program reads the end of its input at once
	Terminal *ExecSize `json:"terminal,omitempty"`
}

// ExecSize is the size of a terminal, in characters.
type ExecSize struct {
	Rows    uint16 `json:"rows"`
	Columns uint16 `json:"cols"`
}

// ExecExit is how a program ended: Code, or Signal when one ended it. Error says why its end is unknown.
type ExecExit struct {
	Code   int    `json:"code"`
	Signal int    `json:"signal"`
	Error  string `json:"error,omitempty"`
}

// Execution is a program that a Source runs beside the app.
type Execution struct {
	Stdin          io.WriteCloser
	Stdout, Stderr io.Reader // they end with the program
	Resize         func(ExecSize) error
	Signal         func(number int) error
	Wait           func(context.Context) ExecExit
	// Close hangs up on a program that has not ended, and makes reads and writes of its streams return.
	Close func() error
}

func (r ExecRequest) check() error {
	if len(r.Argv) == 0 || r.Argv[0] == "" {
		return fmt.Errorf("argv is empty")
	}
	for _, e := range r.Env {
		if name, _, ok := strings.Cut(e, "="); !ok || name == "" {
			return fmt.Errorf("env: got a variable without a value or a name, want NAME=VALUE")
		}
	}
	for _, s := range append(append([]string{r.Cwd}, r.Argv...), r.Env...) {
		if strings.IndexByte(s, 0) >= 0 {
			return fmt.Errorf("argv, env or cwd holds a NUL byte")
		}
	}
	return nil
}

// exec runs a program and makes the connection its streams.
func (s Source) exec(w http.ResponseWriter, r *http.Request) {
	var ask ExecRequest
	if !decode(w, r, &ask) {
		return
	}
	if err := ask.check(); err != nil {
		refuse(w, http.StatusBadRequest, err.Error(), "{argv, env, cwd, stdin, terminal{rows, cols}}")
		return
	}
	if !upgrades(w, r) {
		return
	}
	x, err := s.Exec(r.Context(), ask)
	if err != nil {
		refuse(w, http.StatusConflict, err.Error(), "")
		return
	}
	defer func() { _ = x.Close() }() // the program has ended, or gets a hangup
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		refuse(w, http.StatusInternalServerError, err.Error(), "")
		return
	}
	defer func() { _ = conn.Close() }() // the exchange is over
	if _, err := io.WriteString(conn, switching); err != nil {
		return
	}
	if !ask.Stdin {
		_ = x.Stdin.Close() // a program that has ended reads none
	}
	e := exchange{stream: &stream{conn: conn}, program: x, from: buffered.Reader, stdin: ask.Stdin}
	e.run(r.Context())
}

// exchange is one exec as the agent sees it.
type exchange struct {
	*stream
	program Execution
	from    *bufio.Reader
	stdin   bool
}

// run copies both ways until the program has ended or the caller has hung up.
func (e *exchange) run(ctx context.Context) {
	ctx, gone := context.WithCancel(ctx)
	defer gone()
	stop := context.AfterFunc(ctx, func() { _ = e.program.Close(); _ = e.conn.Close() }) // the caller has hung up
	defer stop()
	var orders sync.WaitGroup
	orders.Go(func() {
		defer gone()
		e.obey()
	})
	defer orders.Wait()
	defer func() { _ = e.conn.Close() }() // ends obey
	var outputs sync.WaitGroup
	for t, r := range map[frameType]io.Reader{frameStdout: e.program.Stdout, frameStderr: e.program.Stderr} {
		outputs.Go(func() { _ = e.copy(t, r) }) // fails when the caller has hung up
	}
	exit := e.program.Wait(ctx)
	outputs.Wait()
	if text, err := json.Marshal(exit); err == nil && ctx.Err() == nil {
		_ = e.write(frameExit, text) // fails when the caller has hung up
	}
}

// obey follows the caller's frames until it hangs up, or sends one that it must not.
func (e *exchange) obey() {
	input := newInput()
	var feeding sync.WaitGroup
	feeding.Go(func() { e.feed(input) })
	defer feeding.Wait()
	defer input.end()
	defer func() { _ = e.program.Close() }() // first, so that the feeding ends too
	for {
		f, err := readFrame(e.from)
		if err != nil {
			return
		}
		switch {
		case f.Type == frameStdin:
			if !e.stdin || !input.put(f.Data) {
				return
			}
		case f.Type == frameStdinEnd:
			input.end()
		case f.Type == frameResize && len(f.Data) == 4:
			size := ExecSize{Rows: binary.BigEndian.Uint16(f.Data), Columns: binary.BigEndian.Uint16(f.Data[2:])}
			_ = e.program.Resize(size) // the program may have ended
		case f.Type == frameSignal && len(f.Data) == 1 && f.Data[0] >= 1 && f.Data[0] <= 64:
			_ = e.program.Signal(int(f.Data[0])) // the program may have ended
		}
	}
}

// feed writes the input, beside obey: a program that does not read delays no signal.
func (e *exchange) feed(in *input) {
	var broken error
	for {
		data, ok := in.next()
		if !ok {
			break
		}
		if broken == nil {
			_, broken = e.program.Stdin.Write(data) // the program reads no more: the rest is dropped
		}
		in.taken(len(data))
		_ = e.write(frameTaken, uint32Bytes(len(data))) // fails when the caller has hung up
	}
	if e.stdin {
		_ = e.program.Stdin.Close() // the program may have ended
	}
}

// input is what the caller has sent and the program has not taken, at most execWindow bytes.
type input struct {
	mu      sync.Mutex
	changed *sync.Cond
	bytes   []byte
	held    int // length of bytes, and of the write under way
	ended   bool
}

func newInput() *input {
	in := &input{}
	in.changed = sync.NewCond(&in.mu)
	return in
}

// put is false for what is beyond the window or after the end.
func (in *input) put(data []byte) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.ended || in.held+len(data) > execWindow {
		return false
	}
	in.held += len(data)
	in.bytes = append(in.bytes, data...)
	in.changed.Signal()
	return true
}

func (in *input) end() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.ended = true
	in.changed.Signal()
}

// next waits for bytes; false at the end.
func (in *input) next() ([]byte, bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for len(in.bytes) == 0 && !in.ended {
		in.changed.Wait()
	}
	data := in.bytes
	in.bytes = nil
	return data, len(data) > 0
}

func (in *input) taken(n int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.held -= n
}
