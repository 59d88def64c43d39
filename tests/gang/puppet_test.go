package gang

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// puppetVerb makes this test binary a puppet: the process of a gang that does what the test says.
const puppetVerb = "puppet"

// Where a puppet finds its stage, and what a child of a puppet calls itself.
const (
	stageVariable = "PUPPET_STAGE"
	childVariable = "PUPPET_CHILD"
)

// hello is a puppet's first line: who it is and what muster told it.
type hello struct {
	Name string   `json:"name"`
	Pid  int      `json:"pid"`
	Args []string `json:"args"`
	Env  []string `json:"env"`
}

// cue is a line from the test.
type cue struct {
	Do   string `json:"do"`
	Text string `json:"text,omitempty"`
	N    int    `json:"n,omitempty"`
}

// word is every later line of a puppet: a cue's answer, or a signal that it has heard.
type word struct {
	Done   bool   `json:"done,omitempty"`
	Error  string `json:"error,omitempty"`
	Signal int    `json:"signal,omitempty"`
}

// puppet is the life of one.
type puppet struct {
	mu   sync.Mutex
	conn net.Conn
}

// puppetMain plays until it is told to exit; it returns when there is no test that could tell it.
func puppetMain() {
	conn, err := net.Dial("unix", os.Getenv(stageVariable))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	p := &puppet{conn: conn}
	name := os.Getenv("MUSTER_INSTANCE")
	if child := os.Getenv(childVariable); child != "" {
		name += "/" + child
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	}
	p.send(hello{Name: name, Pid: os.Getpid(), Args: os.Args[2:], Env: os.Environ()})
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		var c cue
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return
		}
		answer := word{Done: true}
		if err := p.do(c); err != nil {
			answer.Error = err.Error()
		}
		p.send(answer)
	}
}

func (p *puppet) send(v any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := json.NewEncoder(p.conn).Encode(v); err != nil {
		os.Exit(99)
	}
}

func (p *puppet) do(c cue) error {
	switch c.Do {
	case "exit":
		os.Exit(c.N)
	case "say":
		_, err := fmt.Fprintln(os.Stderr, c.Text)
		return err
	case "trap":
		p.trap()
		return nil
	case "save":
		return save(c.N)
	case "listen":
		_, err := net.Listen("tcp", os.Getenv("MUSTER_HOST")+":"+os.Getenv("MUSTER_PORT"))
		return err
	case "serve":
		return serve()
	case "call":
		return callPeer(c.Text)
	case "fork":
		return fork(c.Text)
	case "pour":
		return pour(c.Text)
	}
	return errors.New("no such cue: " + c.Do)
}

// trap makes TERM and INT words to the test in place of the end.
func (p *puppet) trap() {
	heard := make(chan os.Signal, 8)
	signal.Notify(heard, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		for sig := range heard {
			n, _ := sig.(syscall.Signal)
			p.send(word{Signal: int(n)})
		}
	}()
}

// save leaves a whole checkpoint.
func save(step int) error {
	path := filepath.Join(os.Getenv("MUSTER_CHECKPOINT_DIR"), "ckpt-"+strconv.Itoa(step))
	if err := os.WriteFile(path+".new", []byte("step "+strconv.Itoa(step)), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// fork starts another puppet in a session of its own, whose parent is gone: nothing but being a
// descendant ties it to us.
func fork(name string) error {
	script := `setsid "$0" ` + puppetVerb + ` </dev/null >/dev/null 2>&1 &`
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command("sh", "-c", script, self)
	cmd.Env = append(os.Environ(), childVariable+"="+name)
	return cmd.Run()
}

// pour writes numbered lines to standard output for ever, each one also to a file of ours once
// standard output has taken it.
func pour(path string) error {
	copied, err := os.Create(path)
	if err != nil {
		return err
	}
	go func() {
		for n := 0; ; n++ {
			line := fmt.Sprintf("line %09d %s\n", n, strings.Repeat("x", n%97))
			if _, err := os.Stdout.WriteString(line); err != nil {
				os.Exit(98)
			}
			if _, err := copied.WriteString(line); err != nil {
				os.Exit(97)
			}
		}
	}()
	return nil
}
