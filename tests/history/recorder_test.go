package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// boottime is the clock of a history: the same for all namespaces of the machine.
func boottime() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) // cannot fail with this clock
	return ts.Nano()
}

// aliveSince is when a process started, in clock ticks after boot; false when there is none, or only what is left of it
// for its parent to reap.
func aliveSince(pid int) (ticks uint64, alive bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // from field 3
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return 0, false
	}
	ticks, err = strconv.ParseUint(fields[19], 10, 64)
	return ticks, err == nil
}

// recorder appends to the history: the file that the puppets write too.
type recorder struct{ file *os.File }

func openHistory(folder string) (*recorder, error) {
	f, err := os.OpenFile(filepath.Join(folder, "history.jsonl"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	return &recorder{f}, err
}

// write appends one line, in one write: lines of several writers do not mix. An event without a time has it now.
func (r *recorder) write(e event) error {
	if e.At == 0 {
		e.At = boottime()
	}
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = r.file.Write(append(line, '\n'))
	return err
}

// readHistory reads all lines from an offset on, and returns where the next begins.
func readHistory(folder string, from int64) (all []event, next int64, err error) {
	f, err := os.Open(filepath.Join(folder, "history.jsonl"))
	if err != nil {
		return nil, from, err
	}
	defer f.Close()
	var text bytes.Buffer
	if _, err := f.Seek(from, 0); err != nil {
		return nil, from, err
	}
	if _, err := text.ReadFrom(f); err != nil {
		return nil, from, err
	}
	whole := text.Bytes()[:bytes.LastIndexByte(text.Bytes(), '\n')+1]
	for line := range bytes.Lines(whole) {
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, from, fmt.Errorf("%s: %w", line, err)
		}
		all = append(all, e)
	}
	return all, from + int64(len(whole)), nil
}

// watcher of processes: looks again and again who is alive, and writes down when each was so for the last time.
type observer struct {
	folder string
	out    *recorder

	mu   sync.Mutex
	live map[int]event // the starts of processes that were alive at the last look, by pid
	last map[int]int64 // when each of them was last seen alive
	seen int           // processes so far
}

func newObserver(folder string, out *recorder) *observer {
	return &observer{folder: folder, out: out, live: map[int]event{}, last: map[int]int64{}}
}

// look is how often an observer looks.
const look = 50 * time.Millisecond

// watch looks until stop is closed and no process lives any more.
func (o *observer) watch(stop <-chan struct{}) error {
	offset := int64(0)
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for range ticker.C {
		more, next, err := readHistory(o.folder, offset)
		if err != nil {
			return err
		}
		offset = next
		left, err := o.round(more)
		if err != nil {
			return err
		}
		select {
		case <-stop:
			if left == 0 {
				return nil
			}
		default:
		}
	}
	return nil
}

func (o *observer) round(more []event) (left int, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range more {
		if e.Kind == started {
			o.live[e.Pid], o.last[e.Pid] = e, e.At
			o.seen++
		}
	}
	for pid, e := range o.live {
		now := boottime() // before the look: what is alive afterwards was alive then
		if ticks, alive := aliveSince(pid); alive && ticks == e.Ticks {
			o.last[pid] = now
			continue
		}
		died := event{At: o.last[pid], Kind: dead, App: e.App, Instance: e.Instance, Pid: pid, Ticks: e.Ticks}
		err = errors.Join(err, o.out.write(died))
		delete(o.live, pid)
		delete(o.last, pid)
	}
	return len(o.live), err
}

// processes are the starts of those that were alive at the last look.
func (o *observer) processes() (all []event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range o.live {
		all = append(all, e)
	}
	return all
}

// kill ends a process that has not ended yet, and no other of that number.
func (e event) kill(sig syscall.Signal) {
	if ticks, alive := aliveSince(e.Pid); alive && ticks == e.Ticks {
		_ = syscall.Kill(e.Pid, sig) // it may have ended since
	}
}
