package history

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// puppetVerb makes this test binary the process of an instance.
const puppetVerb = "puppet"

// What a puppet is told: where the history and the locks of ranks are, the name of its run, and how long its work takes
// in seconds.
const (
	folderVariable = "HISTORY_FOLDER"
	runVariable    = "HISTORY_RUN"
	workVariable   = "HISTORY_WORK"
)

// locksFolder is where in the folder the locks are.
const locksFolder = "locks"

// Of a hundred puppets, so many fail by themselves, and so many take their time after TERM.
const (
	failPercent   = 3
	lingerPercent = 30
)

// puppet is the life of one: it takes its rank's lock, writes down its start, works, and writes down its end. The lock
// has the pid of its holder; the kernel gives it back when nothing of the holder is left.
func puppet() int {
	number := func(variable string) int {
		n, _ := strconv.Atoi(os.Getenv(variable))
		return n
	}
	terms := make(chan os.Signal, 1)
	signal.Notify(terms, syscall.SIGTERM)
	folder := os.Getenv(folderVariable)
	me := event{
		Kind: started, App: os.Getenv("MUSTER_APP_ID"), Run: os.Getenv(runVariable), Instance: os.Getenv("MUSTER_INSTANCE"),
		Gen: number("MUSTER_GENERATION"), Attempt: number("MUSTER_ATTEMPT"), Pid: os.Getpid(), Host: os.Getenv("MUSTER_HOST"),
	}
	var ok bool
	if me.Ticks, ok = aliveSince(me.Pid); !ok {
		return 96
	}
	name := filepath.Join(folder, locksFolder, me.App+"."+me.Instance+".lock")
	lock, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return 97
	}
	me.Holder = takeLock(lock)
	out, err := openHistory(folder)
	if err != nil {
		return 98
	}
	me.At = boottime()
	if out.write(me) != nil {
		return 99
	}
	end := func(code int) int {
		last := event{At: boottime(), Kind: ending, App: me.App, Instance: me.Instance, Pid: me.Pid, Ticks: me.Ticks, Code: code}
		_ = out.write(last) // without it the process counts as one that was killed
		return code
	}
	work := time.Duration((0.5 + rand.Float64()) * float64(number(workVariable)) * float64(time.Second))
	select {
	case <-terms:
		if rand.IntN(100) < lingerPercent { // as a program that saves itself does
			time.Sleep(time.Duration(rand.Int64N(int64(3 * time.Second))))
		}
		return end(128 + int(syscall.SIGTERM))
	case <-time.After(work):
		if rand.IntN(100) < failPercent {
			return end(1)
		}
		return end(0)
	}
}

// takeLock takes the rank's lock, and returns the pid of a living holder instead; -1 if that has not said its pid yet.
func takeLock(lock *os.File) (holder int) {
	if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		text, _ := io.ReadAll(lock)
		if n, err := strconv.Atoi(string(text)); err == nil {
			return n
		}
		return -1
	}
	_ = lock.Truncate(0)
	_, _ = fmt.Fprint(lock, os.Getpid())
	return 0
}
