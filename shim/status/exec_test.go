package status

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// program is what an agent of these tests runs: a function instead of a process.
type program struct {
	asked   ExecRequest
	sizes   chan ExecSize
	signals chan int
	closed  chan struct{}
}

// runs makes the agent of a run main for every exec.
func runs(a *api, main func(p *program, in io.Reader, out, err io.Writer) ExecExit) *program {
	p := &program{sizes: make(chan ExecSize, 1), signals: make(chan int, 1), closed: make(chan struct{})}
	a.exec = func(_ context.Context, ask ExecRequest) (Execution, error) {
		p.asked = ask
		in, stdin := io.Pipe()
		stdout, out := io.Pipe()
		stderr, errs := io.Pipe()
		exit := make(chan ExecExit, 1)
		go func() {
			x := main(p, in, out, errs)
			_, _ = out.Close(), errs.Close()
			exit <- x
		}()
		return Execution{
			Stdin: stdin, Stdout: stdout, Stderr: stderr,
			Resize: func(z ExecSize) error { p.sizes <- z; return nil },
			Signal: func(n int) error { p.signals <- n; return nil },
			Wait: func(ctx context.Context) ExecExit {
				select {
				case x := <-exit:
					return x
				case <-ctx.Done():
					return ExecExit{}
				}
			},
			Close: sync.OnceValue(func() error {
				close(p.closed)
				return errors.Join(stdin.CloseWithError(io.ErrClosedPipe), stdout.Close(), stderr.Close(), in.Close())
			}),
		}, nil
	}
	return p
}

func patience(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	t.Cleanup(cancel)
	return ctx
}

func TestExecPassesEverythingOn(t *testing.T) {
	a := serve(t)
	input := strings.Repeat("0123456789abcdef", 3*execWindow/16) // more than goes ahead
	p := runs(a, func(p *program, in io.Reader, out, errs io.Writer) ExecExit {
		fmt.Fprintln(out, "size", <-p.sizes, "signal", <-p.signals)
		n, err := io.Copy(out, in)
		fmt.Fprintln(errs, n, err)
		return ExecExit{Code: 7}
	})
	resize, signals := make(chan ExecSize, 1), make(chan int, 1)
	resize <- ExecSize{50, 132}
	signals <- 2
	ask := ExecRequest{Argv: []string{"cat", ""}, Env: []string{"A=b", "C="}, Cwd: "x", Stdin: true, Terminal: &ExecSize{24, 80}}
	var out, errs bytes.Buffer
	x, err := a.client.Exec(patience(t), ask, ExecStreams{Stdin: strings.NewReader(input), Stdout: &out, Stderr: &errs, Resize: resize, Signals: signals})
	if err != nil {
		t.Fatal(err)
	}
	if x != (ExecExit{Code: 7}) {
		t.Errorf("exit %+v", x)
	}
	if got, want := out.String(), "size {50 132} signal 2\n"+input; got != want {
		t.Errorf("stdout has %d bytes, want %d", len(got), len(want))
	}
	if got, want := errs.String(), fmt.Sprintln(len(input), nil); got != want {
		t.Errorf("stderr %q, want %q", got, want)
	}
	if diff := cmp.Diff(ask, p.asked); diff != "" {
		t.Errorf("asked -want +got:\n%s", diff)
	}
}

// A signal reaches a program that does not read its input, however much of that is under way.
func TestExecSignalOvertakesInput(t *testing.T) {
	a := serve(t)
	runs(a, func(p *program, _ io.Reader, _, _ io.Writer) ExecExit { return ExecExit{Signal: <-p.signals} })
	signals := make(chan int)
	sent := make(chan struct{})
	go func() { <-sent; signals <- 15 }()
	input := io.MultiReader(strings.NewReader(strings.Repeat("x", execWindow)), &once{sent}, strings.NewReader(strings.Repeat("y", execWindow)))
	x, err := a.client.Exec(patience(t), ExecRequest{Argv: []string{"sleep"}, Stdin: true}, ExecStreams{Stdin: input, Signals: signals})
	if err != nil || x.Signal != 15 {
		t.Errorf("%+v, %v", x, err)
	}
}

// once closes a channel when it is read.
type once struct{ read chan struct{} }

func (o *once) Read([]byte) (int, error) {
	close(o.read)
	return 0, io.EOF
}

func TestExecWithoutInputFindsItsEnd(t *testing.T) {
	a := serve(t)
	runs(a, func(_ *program, in io.Reader, out, _ io.Writer) ExecExit {
		b, err := io.ReadAll(in)
		fmt.Fprint(out, len(b), err)
		return ExecExit{}
	})
	var out bytes.Buffer
	if _, err := a.client.Exec(patience(t), ExecRequest{Argv: []string{"cat"}}, ExecStreams{Stdout: &out}); err != nil || out.String() != "0 <nil>" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

func TestExecHangsUpWhenTheCallerGoes(t *testing.T) {
	a := serve(t)
	p := runs(a, func(p *program, _ io.Reader, out, _ io.Writer) ExecExit {
		fmt.Fprintln(out, "runs")
		<-p.closed
		return ExecExit{}
	})
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(patience(t))
	_, err := a.client.Exec(ctx, ExecRequest{Argv: []string{"sleep"}}, ExecStreams{Stdout: writer(func([]byte) { cancel(why) })})
	if !errors.Is(err, why) {
		t.Errorf("got %v, want %v", err, why)
	}
	select {
	case <-p.closed:
	case <-patience(t).Done():
		t.Error("nobody hung up")
	}
}

type writer func([]byte)

func (w writer) Write(b []byte) (int, error) { w(b); return len(b), nil }

func TestExecIsRefused(t *testing.T) {
	a := serve(t)
	a.exec = func(context.Context, ExecRequest) (Execution, error) { return Execution{}, errors.New("it is over") }
	for _, c := range []struct {
		name string
		ask  ExecRequest
		want string
	}{
		{"by the agent", ExecRequest{Argv: []string{"true"}}, "it is over"},
		{"nothing to run", ExecRequest{}, "argv is empty; {argv, env, cwd, stdin, terminal{rows, cols}}"},
		{"variable", ExecRequest{Argv: []string{"true"}, Env: []string{"X"}}, "env: got a variable without a value or a name, want NAME=VALUE; {argv, env, cwd, stdin, terminal{rows, cols}}"},
		{"NUL", ExecRequest{Argv: []string{"a\x00"}}, "argv, env or cwd holds a NUL byte; {argv, env, cwd, stdin, terminal{rows, cols}}"},
	} {
		if _, err := a.client.Exec(patience(t), c.ask, ExecStreams{}); err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
	}
	r, err := a.client.http.Post("http://agent/v1/exec", "application/json", strings.NewReader(`{"argv": ["true"]}`))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusUpgradeRequired || r.Header.Get("Upgrade") != execProtocol {
		t.Errorf("without an upgrade: %s, Upgrade %q", r.Status, r.Header.Get("Upgrade"))
	}
}

func TestInputIsBounded(t *testing.T) {
	in := newInput()
	half := make([]byte, execWindow/2)
	for range 2 {
		if !in.put(half) {
			t.Error("less than the window")
		}
	}
	if in.put([]byte{1}) {
		t.Error("more than the window")
	}
	if data, ok := in.next(); !ok || len(data) != execWindow || in.put([]byte{1}) {
		t.Errorf("what is being written counts: %d bytes", len(data))
	}
	in.taken(execWindow)
	if !in.put([]byte{1}) {
		t.Error("what is taken counts")
	}
	in.end()
	if data, ok := in.next(); !ok || len(data) != 1 || in.put([]byte{1}) {
		t.Error("after the end")
	}
	if _, ok := in.next(); ok {
		t.Error("more than there was")
	}
}

// FuzzReadFrame: whatever comes, a frame is read as it was written, or refused; nothing beyond it is touched.
func FuzzReadFrame(f *testing.F) {
	for _, seed := range []frame{{frameStdin, []byte("abc")}, {frameStdinEnd, nil}, {frameResize, []byte{0, 24, 0, 80}}, {frameExit, []byte(`{"code":1}`)}} {
		f.Add(seed.append(nil))
	}
	f.Add([]byte{1, 0, 1, 0, 1, 9})
	f.Add([]byte{1, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{1, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		for {
			before := r.Len()
			frame, err := readFrame(r)
			if err != nil {
				if known := errors.Is(err, io.EOF) && before == 0 || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, errFrame); !known {
					t.Errorf("%d bytes left: %v", before, err)
				}
				return
			}
			again := frame.append(nil)
			if at := len(b) - before; !bytes.Equal(again, b[at:at+len(again)]) || r.Len() != before-len(again) {
				t.Errorf("frame %+v is not what was read", frame)
			}
		}
	})
}
