package nomadserver

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Allocation is one placement of a task group, as the API tells it.
type Allocation struct {
	ID, Name, TaskGroup string
	// ClientStatus is pending, running, complete, failed or lost; DesiredStatus is run, stop or evict.
	ClientStatus, DesiredStatus string
	// PreviousAllocation and NextAllocation are what it replaces and what replaces it.
	PreviousAllocation, NextAllocation string
	TaskStates                         map[string]TaskState
}

// TaskState is what became of one task.
type TaskState struct {
	// State is pending, running or dead.
	State    string
	Failed   bool
	Restarts int
	Events   []TaskEvent
}

// TaskEvent is one step in a task's life, as Started, Terminated, Killing, Killed, Restarting, Not Restarting.
type TaskEvent struct {
	Type, DisplayMessage string
	ExitCode, Signal     int
}

// Index is the number in the allocation's name, gang.worker[0].
func (a Allocation) Index() int {
	_, number, _ := strings.Cut(strings.TrimSuffix(a.Name, "]"), "[")
	n, err := strconv.Atoi(number)
	if err != nil {
		return -1
	}
	return n
}

// ExitCodes are those of all ends of its tasks so far, in their order; 128+n for a signal.
func (a Allocation) ExitCodes() []int {
	var codes []int
	for _, task := range a.TaskStates {
		for _, e := range task.Events {
			if e.Type != "Terminated" {
				continue
			}
			code := e.ExitCode
			if e.Signal != 0 {
				code = 128 + e.Signal
			}
			codes = append(codes, code)
		}
	}
	return codes
}

func (a Allocation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %.8s %s/%s", a.Name, a.ID, a.DesiredStatus, a.ClientStatus)
	for name, task := range a.TaskStates {
		fmt.Fprintf(&b, " %s %s restarts %d", name, task.State, task.Restarts)
		for _, e := range task.Events {
			fmt.Fprintf(&b, "; %s %s", e.Type, e.DisplayMessage)
		}
	}
	return b.String()
}

// AwaitAllocations waits until see says yes to all allocations of a job, by blocking queries, and returns them.
func (s *Server) AwaitAllocations(job, what string, see func([]Allocation) bool) []Allocation {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*watchdog)
	defer cancel()
	var all []Allocation
	for index := uint64(0); ; {
		query := url.Values{"index": {strconv.FormatUint(index, 10)}, "wait": {"20s"}, "task_states": {"true"}}
		next, err := s.ask(ctx, http.MethodGet, "/v1/job/"+url.PathEscape(job)+"/allocations", query, nil, &all)
		if err != nil {
			s.t.Fatalf("not seen within %s: %s: %v\n%s", 2*watchdog, what, err, describe(all))
		}
		if see(all) {
			return all
		}
		index = next
		if next == 0 { // a server without a leader blocks nobody
			time.Sleep(50 * time.Millisecond)
		}
	}
}

// AwaitJob waits until a job has the status: pending, running or dead.
func (s *Server) AwaitJob(job, status string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*watchdog)
	defer cancel()
	for index := uint64(0); ; {
		var answer struct{ Status string }
		query := url.Values{"index": {strconv.FormatUint(index, 10)}, "wait": {"20s"}}
		next, err := s.ask(ctx, http.MethodGet, "/v1/job/"+url.PathEscape(job), query, nil, &answer)
		if err != nil {
			s.t.Fatalf("job %s is %q, want %q: %v", job, answer.Status, status, err)
		}
		if answer.Status == status {
			return
		}
		index = next
	}
}

func describe(all []Allocation) string {
	var b strings.Builder
	for _, a := range all {
		fmt.Fprintln(&b, a)
	}
	return b.String()
}

// Signal sends a signal, as SIGUSR1, to all tasks of an allocation.
func (s *Server) Signal(allocation, signal string) {
	s.t.Helper()
	s.must(http.MethodPut, "/v1/client/allocation/"+allocation+"/signal", nil, map[string]any{"Signal": signal}, nil)
}

// RestartAllocation restarts all running tasks of an allocation in place.
func (s *Server) RestartAllocation(allocation string) {
	s.t.Helper()
	s.must(http.MethodPut, "/v1/client/allocation/"+allocation+"/restart", nil, map[string]any{}, nil)
}

// StopAllocation stops an allocation; Nomad places another in its stead.
func (s *Server) StopAllocation(allocation string) {
	s.t.Helper()
	s.must(http.MethodPut, "/v1/allocation/"+allocation+"/stop", nil, map[string]any{}, nil)
}

// Logs is what a task wrote to stdout or stderr.
func (s *Server) Logs(allocation, task, stream string) string {
	s.t.Helper()
	var text string
	s.must(http.MethodGet, "/v1/client/fs/logs/"+allocation,
		url.Values{"task": {task}, "type": {stream}, "plain": {"true"}}, nil, &text)
	return text
}

// AwaitLog waits until a task has written a text to stdout or stderr, by following the log.
func (s *Server) AwaitLog(allocation, task, stream, text string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	defer cancel()
	query := url.Values{"task": {task}, "type": {stream}, "plain": {"true"}, "follow": {"true"}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet,
		"http://"+s.HTTPAddr+"/v1/client/fs/logs/"+allocation+"?"+query.Encode(), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	var said strings.Builder
	for part := make([]byte, 4096); !strings.Contains(said.String(), text); {
		n, err := resp.Body.Read(part)
		said.Write(part[:n])
		if err != nil && !strings.Contains(said.String(), text) {
			s.t.Fatalf("%s of %s does not say %q: %v\n%s", stream, allocation, text, err, said.String())
		}
	}
}

// Ports are what Nomad has granted an allocation, by label.
func (s *Server) Ports(allocation string) map[string]int {
	s.t.Helper()
	var answer struct {
		AllocatedResources struct {
			Shared struct {
				Ports []struct {
					Label string
					Value int
				}
			}
		}
	}
	s.must(http.MethodGet, "/v1/allocation/"+allocation, nil, nil, &answer)
	ports := map[string]int{}
	for _, p := range answer.AllocatedResources.Shared.Ports {
		ports[p.Label] = p.Value
	}
	return ports
}

// TaskProcesses are the pids, as this test sees them, of a task's processes: those whose environment has its
// allocation.
func (s *Server) TaskProcesses(allocation string) []int {
	return s.jail.ProcessesWith("NOMAD_ALLOC_ID=" + allocation)
}
