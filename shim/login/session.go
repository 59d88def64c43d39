package login

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/shim/wording"
)

// session is a channel in which one program runs (RFC 4254, 6).
type session struct {
	*connection
	channel  ssh.Channel
	env      []string
	terminal *status.ExecSize

	program *status.Execution // nil: none has started
	after   func(status.ExecExit)
	ended   sync.WaitGroup
}

// What a client may set. Everything else is the process's own.
const (
	mostEnv   = 64
	mostValue = 4 << 10 // bytes
)

// sets tells whether a client may set a variable.
func sets(name string) bool {
	switch name {
	case "LANG", "LANGUAGE", "COLORTERM", "NO_COLOR", "TERM_PROGRAM":
		return true
	}
	return strings.HasPrefix(name, "LC_")
}

// serve answers requests until the client has closed the channel.
func (s *session) serve(ctx context.Context, requests <-chan *ssh.Request) {
	ctx, gone := context.WithCancel(ctx)
	defer s.ended.Wait()
	defer func() {
		gone()
		if s.program != nil {
			_ = s.program.Close() // it has ended, or gets a hangup
		}
		_ = s.channel.Close() // it is closed
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case r, ok := <-requests:
			if !ok {
				return
			}
			answer := s.answer(ctx, r)
			if r.WantReply {
				_ = r.Reply(answer, nil) // fails when the client has hung up
			}
			if answer && isStart(r.Type) {
				s.ended.Go(func() { s.copies(ctx) })
			}
		}
	}
}

func isStart(kind string) bool { return kind == "shell" || kind == "exec" || kind == "subsystem" }

// answer does what a request says.
func (s *session) answer(ctx context.Context, r *ssh.Request) bool {
	switch r.Type {
	case "env":
		var v struct{ Name, Value string }
		if ssh.Unmarshal(r.Payload, &v) != nil || !sets(v.Name) || len(s.env) == mostEnv ||
			len(v.Value) > mostValue || strings.ContainsAny(v.Name+v.Value, "\x00") || strings.Contains(v.Name, "=") {
			return false
		}
		s.env = append(s.env, v.Name+"="+v.Value)
		return true
	case "pty-req":
		return s.makeTerminal(r.Payload)
	case "window-change":
		var z struct{ Columns, Rows, Width, Height uint32 }
		if ssh.Unmarshal(r.Payload, &z) != nil || s.program == nil {
			return false
		}
		return s.program.Resize(sizeOf(z.Rows, z.Columns)) == nil
	case "signal":
		var v struct{ Name string }
		if ssh.Unmarshal(r.Payload, &v) != nil || s.program == nil {
			return false
		}
		n, err := status.ParseSignal(v.Name)
		return err == nil && s.program.Signal(n) == nil
	case "shell":
		return s.start(ctx, "a shell", []string{"sh", "-c", shell})
	case "exec":
		var v struct{ Command string }
		if ssh.Unmarshal(r.Payload, &v) != nil || strings.ContainsRune(v.Command, 0) {
			return false
		}
		return s.start(ctx, "command "+short(v.Command), []string{"sh", "-c", v.Command})
	case "subsystem":
		var v struct{ Name string }
		if ssh.Unmarshal(r.Payload, &v) != nil || v.Name != "sftp" || s.Program == "" {
			return false
		}
		return s.start(ctx, "sftp", []string{s.Program, Verb, "sftp"})
	}
	return false
}

// Verb is the verb of muster's program that serves sftp in the container.
const Verb = "login"

// shell is the best one of the container. It is no login shell: that would read /etc/profile, which sets PATH anew.
const shell = `if command -v bash >/dev/null 2>&1; then exec bash; fi; exec sh`

func short(command string) string {
	const most = 120
	command = strings.Join(strings.Fields(command), " ")
	if r := []rune(command); len(r) > most {
		return string(r[:most]) + "…"
	}
	return command
}

// makeTerminal notes that the program is to get a terminal. Its modes are the kernel's.
func (s *session) makeTerminal(payload []byte) bool {
	var z struct {
		Term                         string
		Columns, Rows, Width, Height uint32
		Modes                        string
	}
	if ssh.Unmarshal(payload, &z) != nil || s.program != nil || strings.ContainsRune(z.Term, 0) ||
		len(z.Term) > mostValue {
		return false
	}
	size := sizeOf(z.Rows, z.Columns)
	s.terminal, s.env = &size, append(s.env, "TERM="+z.Term)
	return true
}

func sizeOf(rows, columns uint32) status.ExecSize {
	const most = 1 << 15
	return status.ExecSize{Rows: uint16(min(rows, most)), Columns: uint16(min(columns, most))} //nolint:gosec // at most
}

// start starts the one program of the channel. What forbids it is told to the client, and is its end.
func (s *session) start(ctx context.Context, what string, argv []string) bool {
	if s.program != nil {
		return false
	}
	x, err := s.Exec(ctx, status.ExecRequest{Argv: argv, Env: s.env, Stdin: true, Terminal: s.terminal})
	if err != nil {
		x = failed(err)
	}
	s.program = &x
	begun, number := time.Now(), s.count()
	s.Event(fmt.Sprintf("session %d of %s begins: %s", number, s.who, what))
	s.after = func(end status.ExecExit) {
		s.Event(fmt.Sprintf("session %d ends after %s: %s", number, wording.Took(time.Since(begun)), endOf(end)))
	}
	return true
}

// failed is a program that was not started.
func failed(err error) status.Execution {
	return status.Execution{
		Stdin: nowhere{}, Stdout: strings.NewReader(""), Stderr: strings.NewReader(""),
		Resize: func(status.ExecSize) error { return err }, Signal: func(int) error { return err },
		Wait:  func(context.Context) status.ExecExit { return status.ExecExit{Error: err.Error()} },
		Close: func() error { return nil },
	}
}

// nowhere takes the input of no program.
type nowhere struct{}

func (nowhere) Write(b []byte) (int, error) { return len(b), nil }

func (nowhere) Close() error { return nil }

// endOf is the end of a program in words.
func endOf(x status.ExecExit) string {
	switch {
	case x.Error != "":
		return x.Error
	case x.Signal != 0:
		return registry.SignalName(x.Signal)
	}
	return "exit code " + strconv.Itoa(x.Code)
}

// copies moves the program's input and output, and ends the channel with it. ctx ends when the client has hung up.
func (s *session) copies(ctx context.Context) {
	x := *s.program
	go func() { // ends when the channel is closed
		_, err := io.Copy(x.Stdin, s.channel)
		if s.terminal == nil || err != nil {
			_ = x.Stdin.Close() // the program may have ended
		}
		_, _ = io.Copy(io.Discard, s.channel) // it reads no more
	}()
	var outputs sync.WaitGroup
	outputs.Go(func() { _, _ = io.Copy(s.channel, x.Stdout) }) // fails when the client has hung up
	outputs.Go(func() { _, _ = io.Copy(s.channel.Stderr(), x.Stderr) })
	end := x.Wait(ctx)
	outputs.Wait()
	if ctx.Err() != nil && end.Error != "" {
		end.Error = "the client has hung up"
	}
	s.after(end)
	s.sendEnd(end)
	_ = s.channel.Close() // the client may have hung up
}

// sendEnd tells the client how the program ended. All of it fails when the client has hung up.
func (s *session) sendEnd(end status.ExecExit) {
	switch {
	case end.Error != "":
		_, _ = io.WriteString(s.channel.Stderr(), "muster: "+end.Error+"\r\n")
		s.sendCode(unknownEnd)
	case end.Signal != 0:
		_, _ = s.channel.SendRequest("exit-signal", false, ssh.Marshal(struct {
			Name      string
			Core      bool
			Text, Tag string
		}{Name: strings.TrimPrefix(registry.SignalName(end.Signal), "SIG")}))
	default:
		s.sendCode(end.Code)
	}
}

func (s *session) sendCode(code int) {
	status := struct{ Code uint32 }{uint32(code)} //nolint:gosec // of a process
	_, _ = s.channel.SendRequest("exit-status", false, ssh.Marshal(status))
}

// unknownEnd is the exit status of a program that was not started, or whose end nobody saw.
const unknownEnd = 255
