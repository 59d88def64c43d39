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
	Cwd      string    `json:"cwd,omitempty"` // from the app's own on
	Stdin    bool      `json:"stdin"`         // false: the program finds its input at its end
	Terminal *ExecSize `json:"terminal,omitempty"`
}

// ExecSize is that of a terminal, in characters.
type ExecSize struct {
	Rows    uint16 `json:"rows"`
	Columns uint16 `json:"cols"`
}

// ExecExit is how a program ended: Code, or Signal when one ended it. Error says that nobody saw it.
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
	defer func() { _ = x.Close() }() // it has ended, or is hung up on
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		refuse(w, http.StatusInternalServerError, err.Error(), "")
		return
	}
	defer func() { _ = conn.Close() }() // all is said
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

// run passes on what comes from either side, until the program has ended or the caller is gone.
func (e *exchange) run(ctx context.Context) {
	ctx, gone := context.WithCancel(ctx)
	defer gone()
	stop := context.AfterFunc(ctx, func() { _ = e.program.Close(); _ = e.conn.Close() }) // nobody listens
	defer stop()
	go func() {
		defer gone()
		e.hear()
	}()
	var outputs sync.WaitGroup
	for t, r := range map[FrameType]io.Reader{FrameStdout: e.program.Stdout, FrameStderr: e.program.Stderr} {
		outputs.Go(func() { _ = e.copy(t, r) }) // the caller is gone: it is hung up on
	}
	exit := e.program.Wait(ctx)
	outputs.Wait()
	if text, err := json.Marshal(exit); err == nil && ctx.Err() == nil {
		_ = e.write(FrameExit, text) // as above
	}
}

// hear obeys the caller until it goes, or says what it must not.
func (e *exchange) hear() {
	input := newInput()
	var feeding sync.WaitGroup
	feeding.Go(func() { e.feed(input) })
	defer feeding.Wait()
	defer input.end()
	defer func() { _ = e.program.Close() }() // first, so that the feeding ends too
	for {
		f, err := ReadFrame(e.from)
		if err != nil {
			return
		}
		switch {
		case f.Type == FrameStdin:
			if !e.stdin || !input.put(f.Data) {
				return
			}
		case f.Type == FrameStdinEnd:
			input.end()
		case f.Type == FrameResize && len(f.Data) == 4:
			_ = e.program.Resize(ExecSize{binary.BigEndian.Uint16(f.Data), binary.BigEndian.Uint16(f.Data[2:])}) // ended meanwhile
		case f.Type == FrameSignal && len(f.Data) == 1 && f.Data[0] >= 1 && f.Data[0] <= 64:
			_ = e.program.Signal(int(f.Data[0])) // ended meanwhile
		}
	}
}

// feed writes the input: orders are heard beside it though the program does not read.
func (e *exchange) feed(in *input) {
	var broken error
	for {
		data, ok := in.next()
		if !ok {
			break
		}
		if broken == nil {
			_, broken = e.program.Stdin.Write(data) // it reads no more: what comes is for nobody
		}
		in.taken(len(data))
		_ = e.write(FrameTaken, uint32Bytes(len(data))) // the caller is gone
	}
	if e.stdin {
		_ = e.program.Stdin.Close() // ended meanwhile
	}
}

// input is what the caller has sent and the program has not taken, at most ExecWindow bytes.
type input struct {
	mu      sync.Mutex
	changed *sync.Cond
	bytes   []byte
	held    int // in bytes, and of the write under way
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
	if in.ended || in.held+len(data) > ExecWindow {
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
