package outage_test

import (
	"encoding/json"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// puppetVerb makes this test binary the process of a member.
const puppetVerb = "puppet"

// Where a puppet finds its stage, and how long it takes at most to end after TERM, unless the test hangs up before.
const (
	stageVariable  = "OUTAGE_STAGE"
	lingerVariable = "OUTAGE_LINGER"
)

// word is a line from a puppet to its test.
type word struct {
	Name    string `json:"name,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	Gen     int    `json:"gen,omitempty"`
	Pid     int    `json:"pid,omitempty"`
	Host    string `json:"host,omitempty"`
	Twice   bool   `json:"twice,omitempty"` // another process of this rank lives
	Term    bool   `json:"term,omitempty"`  // it has heard TERM
}

// puppet is the life of one: it holds its rank's lock, which the kernel gives back when nothing of it is left, and
// ends with 0 when the test hangs up, and with 143 after TERM.
func puppet() int {
	stage, name := os.Getenv(stageVariable), os.Getenv("MUSTER_INSTANCE")
	number := func(variable string) int {
		n, _ := strconv.Atoi(os.Getenv(variable))
		return n
	}
	lock, err := os.OpenFile(filepath.Join(stage, name+".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return 98
	}
	twice := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil
	conn, err := net.Dial("unix", filepath.Join(stage, "stage.sock"))
	if err != nil {
		return 99
	}
	terms := make(chan os.Signal, 1)
	signal.Notify(terms, syscall.SIGTERM)
	say := json.NewEncoder(conn)
	_ = say.Encode(word{
		Name: name, Attempt: number("MUSTER_ATTEMPT"), Gen: number("MUSTER_GENERATION"), Pid: os.Getpid(),
		Host: os.Getenv("MUSTER_HOST"), Twice: twice,
	})
	over := make(chan struct{})
	go func() {
		_, _ = conn.Read(make([]byte, 1)) // only its end matters
		close(over)
	}()
	select {
	case <-over:
		return 0
	case <-terms:
		_ = say.Encode(word{Term: true})
		select { // as a program that saves itself does
		case <-over:
		case <-time.After(time.Duration(number(lingerVariable)) * time.Second):
		}
		return 143
	}
}
