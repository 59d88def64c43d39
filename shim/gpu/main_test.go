package gpu

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"
)

// The test binary is also the helpers of its tests: fakeVariable holds what it does wrong.
func TestMain(m *testing.M) {
	if text, ok := os.LookupEnv(fakeVariable); ok {
		var f fake
		if err := json.Unmarshal([]byte(text), &f); err != nil {
			panic(err)
		}
		os.Exit(f.serve())
	}
	os.Exit(m.Run())
}

const (
	fakeVariable = "GPU_TEST_FAKE"
	watchdog     = 30 * time.Second
)

// fake is a helper with faults. Once names a file: its fault happens only in the process that makes it.
type fake struct {
	Protocol int    // 0: ours
	NoDriver bool   // it says so and ends
	Mute     bool   // it never answers
	Hang     Op     // it never answers this
	Die      Op     // it ends instead of answering this
	Garbage  Op     // it answers this with no JSON
	Deaf     bool   // it does not end with its stdin
	Once     string // see above
	Xid      int    // it tells of it when it is asked for events
}

func (f fake) serve() int {
	if f.Deaf {
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP)
	}
	out := json.NewEncoder(os.Stdout)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var r Request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return 64
		}
		if status, done := f.answer(r, out); done {
			return status
		}
	}
	for f.Deaf {
		signal.Ignore(syscall.SIGTERM)
		time.Sleep(time.Hour)
	}
	return 0
}

func (f fake) answer(r Request, out *json.Encoder) (status int, done bool) {
	reply := Reply{ID: r.ID}
	switch {
	case f.Mute, r.Op == f.Hang && f.first():
		time.Sleep(time.Hour)
	case r.Op == f.Die && f.first():
		fmt.Fprintln(os.Stderr, "symbol lookup error: undefined symbol: nvmlSomething")
		return 127, true
	case r.Op == f.Garbage && f.first():
		fmt.Println("NVML WARNING")
		return 0, false
	case f.NoDriver:
		reply.Error = &Problem{Code: CodeNoDriver, Text: "the driver is not loaded"}
		_ = out.Encode(reply)
		return 69, true
	}
	switch r.Op {
	case OpHello:
		reply.Hello = &Hello{Protocol: Protocol, Driver: "550.54.15"}
		if f.Protocol != 0 {
			reply.Hello.Protocol = f.Protocol
		}
	case OpInventory:
		reply.Inventory = &Inventory{Driver: "550.54.15", Devices: []Device{
			{Index: 0, Minor: 0, UUID: "GPU-a", NUMA: -1}, {Index: 1, Minor: 1, UUID: "GPU-b", NUMA: -1, PCI: "0000:1b:00.0"},
		}}
	case OpHealth:
		reply.Vitals = []Vitals{{UUID: "GPU-a"}, {Index: 1, UUID: "GPU-b", RemapPending: true}}
	case OpProcesses:
		reply.Processes = map[string][]Process{"GPU-a": {{PID: 7, UsedMB: 9, Kind: "compute"}}}
	case OpLoad:
		reply.Loads = []Load{{ID: "GPU-a", Use: 50, Used: 1, Total: 2}, {ID: "GPU-b", Use: -1, Used: -1, Total: -1}}
	case OpQuit, OpEvents:
	default:
		reply.Error = &Problem{Code: CodeUnknownOp, Text: "what?"}
	}
	_ = out.Encode(reply)
	if r.Op == OpEvents && f.Xid != 0 {
		_ = out.Encode(Reply{Event: &Event{Kind: EventXid, Device: "GPU-a", Xid: f.Xid}})
	}
	return 0, r.Op == OpQuit
}

// first tells that the fault has not happened yet.
func (f fake) first() bool {
	if f.Once == "" {
		return true
	}
	file, err := os.OpenFile(f.Once, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return false
	}
	file.Close()
	return true
}
