// Package serve answers the line protocol of shim/gpu with what NVML says. In go requests and an NVML, the real one or
// a mock; out come replies and events. It judges nothing: facts go out as the driver tells them.
package serve

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/muster-agent/muster/shim/gpu"
)

// drainTime is how long requests may take that were asked before the end of the input. The agent is gone then, and NVML
// may hang: the process must not.
const drainTime = 2 * time.Second

// Serve answers until the input ends or asks it to quit. Without a working driver it answers one request with that
// and returns the reason.
func Serve(lib nvml.Interface, in io.Reader, out io.Writer) error {
	s := &server{lib: newLibrary(lib), out: json.NewEncoder(out), quit: make(chan struct{})}
	requests := make(chan gpu.Request)
	ended := make(chan error, 1)
	// The process ends with Serve: a call of NVML that hangs, and a read of the input, can be waited for no longer.
	go func() { ended <- s.work(requests) }()
	read := make(chan struct{})
	go func() {
		defer close(read)
		s.read(in, requests)
	}()
	select {
	case err := <-ended:
		return err
	case <-read:
	}
	close(requests)
	timer := time.NewTimer(drainTime)
	defer timer.Stop()
	select {
	case err := <-ended:
		return err
	case <-timer.C:
		return fmt.Errorf("NVML does not return; it is not waited for any longer")
	}
}

type server struct {
	lib     *library
	quit    chan struct{} // closed when the worker is done: no request is taken any more
	writing sync.Mutex
	out     *json.Encoder
	events  *eventSet
}

// read hands the requests to the worker. A line that is none is answered at once.
func (s *server) read(in io.Reader, requests chan<- gpu.Request) {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var r gpu.Request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			s.say(gpu.Reply{Error: &gpu.Problem{Code: gpu.CodeUnknownOp, Text: "no request: " + err.Error()}})
			continue
		}
		select {
		case requests <- r:
		case <-s.quit:
			return
		}
	}
}

// work does all calls of NVML but the wait for events, one after the other.
func (s *server) work(requests <-chan gpu.Request) error {
	defer close(s.quit)
	if err := s.lib.init(); err != nil {
		if r, ok := <-requests; ok {
			s.say(gpu.Reply{ID: r.ID, Error: &gpu.Problem{Code: gpu.CodeNoDriver, Text: err.Error()}})
		}
		return err
	}
	for r := range requests {
		reply := s.answer(r.Op)
		reply.ID = r.ID
		s.say(reply)
		if r.Op == gpu.OpQuit {
			break
		}
	}
	if s.events != nil {
		s.events.stop()
	}
	s.lib.shutdown()
	return nil
}

func (s *server) say(r gpu.Reply) {
	s.writing.Lock()
	defer s.writing.Unlock()
	// When the reader has ended, the input ends too.
	_ = s.out.Encode(r)
}

func (s *server) answer(op gpu.Op) gpu.Reply {
	var reply gpu.Reply
	var err error
	switch op {
	case gpu.OpHello:
		hello := s.lib.hello()
		reply.Hello = &hello
	case gpu.OpInventory:
		var inv gpu.Inventory
		inv, err = s.lib.inventory()
		reply.Inventory = &inv
	case gpu.OpHealth:
		reply.Vitals, err = s.lib.vitals()
	case gpu.OpProcesses:
		reply.Processes, err = s.lib.processes()
	case gpu.OpLoad:
		reply.Loads, err = s.lib.loads()
	case gpu.OpEvents:
		if s.events == nil {
			s.events, err = s.lib.watch(func(e gpu.Event) { s.say(gpu.Reply{Event: &e}) })
		}
	case gpu.OpQuit:
	default:
		return gpu.Reply{Error: &gpu.Problem{
			Code: gpu.CodeUnknownOp,
			Text: fmt.Sprintf("operation %q: not known to protocol %d", op, gpu.Protocol),
		}}
	}
	if err != nil {
		return gpu.Reply{Error: &gpu.Problem{Code: gpu.CodeNVML, Text: err.Error()}}
	}
	return reply
}
