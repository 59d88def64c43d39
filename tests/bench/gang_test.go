package bench

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
	"github.com/muster-agent/muster/tests/child"
	"github.com/muster-agent/muster/tests/servers/consulserver"
)

// atMost is how many protocol clients one process holds: the host gives a process 20,000 descriptors.
const atMost = 2500

// directly is how many members ask the server itself, which has as many descriptors; the others ask a second Consul
// agent of its cluster.
const directly = 9000

// watchdogGang ends a measurement that has gone wrong.
const watchdogGang = 15 * time.Minute

// BenchmarkGang measures from the last member's arrival at the barrier to the last member that has the roster and has
// checked it, with so many protocol clients on one Consul server, in three ways:
//
//	peers     as the product does it: the roster comes from peers
//	registry  the same, but everybody reads the roster from the registry
//	prefix    every member watches the prefix in which all arrive
//	agents    as peers, but 200 of the members (BENCH_GANG_REAL) are real agents, each with its process; theirs count until it runs
//
// What is reported is of one barrier: bytes and requests of the server are per member.
//
//	BENCH_GANG='64 1000' BENCH_GANG_PREFIX=1000 go test -run '^$' -bench Gang -benchtime 1x ./tests/bench
//
// BENCH_GANG has the sizes (64), BENCH_GANG_<WAY> the largest size of a way.
func BenchmarkGang(b *testing.B) {
	sizes := cmp.Or(os.Getenv(gangVariable), "64")
	for size := range strings.FieldsSeq(sizes) {
		n, err := strconv.Atoi(size)
		if err != nil {
			b.Fatal(err)
		}
		for _, way := range []string{"peers", "registry", "prefix", "agents"} {
			b.Run(fmt.Sprintf("%s/%d", way, n), func(b *testing.B) {
				if most, err := strconv.Atoi(os.Getenv(gangVariable + "_" + strings.ToUpper(way))); err == nil && n > most {
					b.Skipf("not with more than %d members", most)
				}
				if way == "agents" && n <= realAgents() {
					b.Skipf("not with fewer than %d members", realAgents()+1)
				}
				for b.Loop() {
					measureGang(b, way, n)
				}
			})
		}
	}
}

const gangVariable = "BENCH_GANG"

// gangBed is one measurement.
type gangBed struct {
	b       *testing.B
	server  *consulserver.Server
	second  *consulserver.Server // nil: all ask the server
	clients []*clientProcess
	agents  *agents // nil: none
	count   int     // members

	messages chan clientsSaid
	seen     bool // the conductor has seen all members but the last
}

// clientsSaid is what a process of clients said.
type clientsSaid struct {
	clientsMessage
	from *clientProcess
	err  error
}

// patientTimes are those of the members: 10,000 in a few processes of one host cannot renew every 3 s.
func patientTimes() registry.Times {
	t := registry.DefaultTimes()
	t.TTL, t.Renew, t.Request, t.Lost, t.LostMass = 5*time.Minute, time.Minute, time.Minute, 15*time.Minute, 20*time.Minute
	return t
}

func measureGang(b *testing.B, way string, n int) {
	const telemetry = "telemetry { prometheus_retention_time = \"1h\" disable_hostname = true }\n"
	bed := &gangBed{b: b, server: consulserver.Start(b, consulserver.Options{Config: telemetry}), count: n}
	bed.messages = make(chan clientsSaid, 16)
	if n > directly && way != "prefix" {
		bed.second = bed.server.Client(b, "limits { http_max_conns_per_client = 10000 }", "")
	}
	defer bed.end()
	facts := conductor.Facts{
		App: benchApp, Run: "1", Digest: "bench", Times: patientTimes(), GangBudget: conductor.BudgetRule{Max: -1},
		Components: []conductor.ComponentFacts{{
			Name: "worker", Role: "worker", Count: n, Scope: registry.ScopeGang, Waited: true, Ends: true, Fails: true,
		}},
	}
	if way == "agents" {
		bed.agents, facts = startAgents(b, bed.server.URL(), n)
	}
	began := time.Now()
	// Those that serve others have a process of their own: in reality they share no processor with them.
	serving := n/registry.FanOut + 1
	bed.start(way, facts, 0, serving, n)
	for from := serving; from < n; from += atMost {
		bed.start(way, facts, from, min(from+atMost, n), n)
	}
	if way == "prefix" {
		bed.said("written")
		for _, c := range bed.clients {
			c.write(b, "watch")
		}
	}
	bed.said("waiting")
	if way != "prefix" {
		bed.conductorSees()
	}
	b.Logf("%d members are there after %s", n, time.Since(began).Round(time.Second))
	before := bed.counters()
	for _, c := range bed.clients {
		c.write(b, "arrive")
	}
	total := clientsResult{First: math.MaxInt64}
	for _, r := range bed.said("done") {
		if r.Failed != "" {
			b.Fatal(r.Failed)
		}
		total.Arrived, total.First = max(total.Arrived, r.Arrived), min(total.First, r.First)
		total.Released, total.Verified = max(total.Released, r.Released), max(total.Verified, r.Verified)
		total.CPU += r.CPU
		if total.Fallen += r.Fallen; r.Fallen > 0 {
			b.Logf("%d members of a process read the roster from the registry, the first for: %s", r.Fallen, r.Why)
		}
	}
	after := bed.counters()
	total.Verified = max(total.Verified, bed.agents.started(b))
	each := func(f float64) float64 { return f / float64(n) }
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(total.First-total.Arrived)/1e9, "first-s")
	b.ReportMetric(float64(total.Released-total.Arrived)/1e9, "released-s")
	b.ReportMetric(float64(total.Verified-total.Arrived)/1e9, "verified-s")
	b.ReportMetric(each(float64(after.bytes-before.bytes)), "server-B/member")
	b.ReportMetric(each(after.requests-before.requests), "requests/member")
	b.ReportMetric(float64(total.Fallen), "fallen")
	b.ReportMetric((after.cpu - before.cpu).Seconds(), "server-cpu-s")
	b.ReportMetric(total.CPU.Seconds(), "clients-cpu-s")
	b.ReportMetric(float64(after.memory)/1024, "server-MiB")
}

func (d *gangBed) start(way string, facts conductor.Facts, from, to, n int) {
	order := clientsOrder{Registry: d.server.URL(), Facts: facts, Digest: facts.Digest, Peers: way == "peers" || way == "agents", Count: n}
	if d.second != nil && to == n {
		order.Registry = d.second.URL()
		d.startOne(d.server.URL(), order, from, min(to, directly))
		from = min(to, directly)
	}
	if way == "prefix" {
		order.Prefix = "http://" + d.server.HTTPAddr + "/v1/kv/bench/"
	}
	d.startOne(order.Registry, order, from, to)
}

func (d *gangBed) startOne(at string, order clientsOrder, from, to int) {
	order.Registry = at
	for i := from; i < to; i++ {
		if !d.agents.has(i) {
			order.Members = append(order.Members, registry.Instance{Component: "worker", Index: i})
		}
	}
	if to == order.Count {
		order.Last = &order.Members[len(order.Members)-1]
	}
	c := startClients(d.b)
	d.clients = append(d.clients, c)
	go c.listen(d.b.Context(), d.messages)
	c.write(d.b, order)
}

// said waits until all clients have come so far.
func (d *gangBed) said(what string) []clientsResult {
	d.b.Helper()
	var all []clientsResult
	watchdog := time.NewTimer(watchdogGang)
	defer watchdog.Stop()
	for said := 0; said < len(d.clients); {
		select {
		case m := <-d.messages:
			switch {
			case m.err != nil:
				m.from.fail(d.b, m.err)
			case m.Said == "seen":
				d.seen = true
			case m.Said != what:
				d.b.Fatalf("protocol clients said %q, want %q", m.Said, what)
			default:
				said++
			}
			if m.Result != nil {
				all = append(all, *m.Result)
			}
		case <-watchdog.C:
			d.b.Fatalf("%d of %d processes of clients said %q within %s", said, len(d.clients), what, watchdogGang)
		}
	}
	return all
}

// conductorSees waits until the conductor, an agent or among the clients, has seen all members but the last.
func (d *gangBed) conductorSees() {
	d.b.Helper()
	awaitWithin(d.b, watchdogGang, "conductor that sees all members", func() bool {
		select {
		case m := <-d.messages:
			if m.err != nil {
				m.from.fail(d.b, m.err)
			}
			d.seen = d.seen || m.Said == "seen"
		default:
		}
		return d.seen || d.agents.seen(d.b, d.count-1)
	})
}

func (d *gangBed) end() {
	for _, c := range d.clients {
		c.end()
	}
	d.agents.end()
	d.server.Kill()
	if d.second != nil {
		d.second.Kill()
	}
}

// counters are those of the Consul server, and of the second agent if there is one.
type counters struct {
	bytes    int64 // written, to sockets and disk
	requests float64
	cpu      time.Duration
	memory   int64 // most so far, in KiB
}

func (d *gangBed) counters() counters {
	d.b.Helper()
	var sum counters
	for _, s := range []*consulserver.Server{d.server, d.second} {
		if s == nil {
			continue
		}
		dir := fmt.Sprintf("/proc/%d/", s.PID())
		sum.bytes += number(d.b, dir+"io", "wchar:")
		sum.memory += number(d.b, dir+"status", "VmHWM:")
		sum.requests += requestsOf(d.b, s.HTTPAddr)
		text, err := os.ReadFile(dir + "stat")
		if err != nil {
			d.b.Fatal(err)
		}
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+2:]))
		for _, field := range fields[11:13] { // utime and stime, in ticks of 10 ms
			ticks, err := strconv.Atoi(field)
			if err != nil {
				d.b.Fatal(err)
			}
			sum.cpu += time.Duration(ticks) * 10 * time.Millisecond
		}
	}
	return sum
}

// number is that of a line `NAME NUMBER …` of a file.
func number(b *testing.B, path, name string) int64 {
	b.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == name {
			n, err := strconv.ParseInt(words[1], 10, 64)
			if err != nil {
				b.Fatal(err)
			}
			return n
		}
	}
	b.Fatalf("%s has no %s", path, name)
	return 0
}

// requestsOf is how many HTTP requests a Consul agent has answered.
func requestsOf(b *testing.B, address string) float64 {
	b.Helper()
	var sum float64
	err := do(http.DefaultClient, http.MethodGet, "http://"+address+"/v1/agent/metrics?format=prometheus", nil, func(r *http.Response) error {
		lines := bufio.NewScanner(r.Body)
		for lines.Scan() {
			if line := lines.Text(); strings.HasPrefix(line, "consul_api_http_count") {
				n, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
				if err != nil {
					return err
				}
				sum += n
			}
		}
		return lines.Err()
	})
	if err != nil {
		b.Fatal(err)
	}
	return sum
}

// do makes one request; read gets the answer, if it is 200.
func do(c *http.Client, method, url string, body []byte, read func(*http.Response) error) error {
	req, err := http.NewRequest(method, url, bytes.NewReader(body)) //nolint:noctx // ends with its process
	if err != nil {
		return err
	}
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(resp.Body)
		return fmt.Errorf("%s: %s: %s", url, resp.Status, text)
	}
	if read == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		return err
	}
	return read(resp)
}

// clientProcess is a process of protocol clients.
type clientProcess struct {
	run *exec.Cmd
	in  io.WriteCloser
	out *json.Decoder
	log string
}

func startClients(b *testing.B) *clientProcess {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	c := &clientProcess{run: exec.Command(self, clientsVerb), log: filepath.Join(b.TempDir(), "clients.log")}
	c.run.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	log, err := os.Create(c.log)
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close()
	c.run.Stderr = log
	if c.in, err = c.run.StdinPipe(); err != nil {
		b.Fatal(err)
	}
	out, err := c.run.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	c.out = json.NewDecoder(out)
	if err := c.run.Start(); err != nil {
		b.Fatal(err)
	}
	return c
}

func (c *clientProcess) write(b *testing.B, v any) {
	b.Helper()
	if err := json.NewEncoder(c.in).Encode(v); err != nil {
		c.fail(b, err)
	}
}

// listen passes on what the clients say, until they end or the benchmark does.
func (c *clientProcess) listen(ctx context.Context, messages chan<- clientsSaid) {
	for {
		m := clientsSaid{from: c}
		m.err = c.out.Decode(&m.clientsMessage)
		select {
		case messages <- m:
		case <-ctx.Done():
			return
		}
		if m.err != nil {
			return
		}
	}
}

func (c *clientProcess) fail(b *testing.B, err error) {
	b.Helper()
	text, _ := os.ReadFile(c.log)
	b.Fatalf("protocol clients: %v\n%s", err, child.Tail(string(text), 30))
}

func (c *clientProcess) end() {
	_ = c.run.Process.Kill()
	_ = c.run.Wait() // killed
}
