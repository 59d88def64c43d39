package bench

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/status"
)

// clientsVerb makes this program a process of protocol clients: members of a gang without agents and processes.
const clientsVerb = "gang-clients"

// clientsOrder is what such a process is told in its first line. The second line makes the last member arrive.
type clientsOrder struct {
	Registry string // as --registry takes it
	Facts    conductor.Facts
	Digest   string
	Members  []registry.Instance
	Last     *registry.Instance // of Members: arrives when told
	Peers    bool               // they read the roster from each other
	Prefix   string             // in place of the protocol: all watch this prefix of URL
	Count    int                // keys under the prefix
}

// clientsMessage is what such a process says: how far its members are, and at last what it has measured.
type clientsMessage struct {
	Said   string // written, waiting, seen, done
	Result *clientsResult
}

// clientsResult is what it measured: moments in Unix nanoseconds, and the CPU time of the process in between.
type clientsResult struct {
	Arrived  int64 // the last member began to acknowledge; 0: it is not among these
	First    int64 // the first of these members saw the release
	Released int64 // the last of them did
	Verified int64 // the last of them had the roster and checked it
	CPU      time.Duration
	Fallen   int    // members that no peer gave the roster: they read it from the registry
	Why      string // of the first of them
	Failed   string
}

// clients are the members in one process.
type clients struct {
	order clientsOrder
	out   *json.Encoder

	mu       sync.Mutex // also of out
	result   clientsResult
	released sync.WaitGroup
	last     *consul.Membership
}

func runClients(in io.Reader, out io.Writer) error {
	debug.SetMemoryLimit(5 << 30)
	debug.SetGCPercent(400) // a process of thousands of members scans all of them at each turn: an agent has one
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	limit.Cur = limit.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	lines := bufio.NewReaderSize(in, 1<<20)
	c := &clients{out: json.NewEncoder(out)}
	if err := c.next(lines, &c.order); err != nil {
		return err
	}
	if c.order.Prefix != "" {
		return c.watchPrefix(lines)
	}
	if err := c.join(); err != nil {
		return err
	}
	if err := c.say("waiting", nil); err != nil {
		return err
	}
	var arrive string
	if err := c.next(lines, &arrive); err != nil {
		return err
	}
	stopProfile, err := c.profile()
	if err != nil {
		return err
	}
	before := ownCPU()
	if c.last != nil {
		c.result.Arrived = time.Now().UnixNano()
		if err := acknowledge(c.last, ""); err != nil {
			return err
		}
	}
	c.released.Wait()
	c.result.CPU = ownCPU() - before
	stopProfile()
	if err := c.say("done", &c.result); err != nil {
		return err
	}
	_, _ = lines.ReadString('\n') // until this process is told to end: its members serve their peers
	return nil
}

// profile writes where this process spends its processors' time, as a file of pprof in BENCH_GANG_PROFILE.
func (c *clients) profile() (stop func(), err error) {
	dir := os.Getenv(gangVariable + "_PROFILE")
	if dir == "" {
		return func() {}, nil
	}
	first := c.order.Members[0].Index
	f, err := os.Create(filepath.Join(dir, fmt.Sprintf("%d-from-%d.pprof", c.order.Count, first)))
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() {
		pprof.StopCPUProfile()
		_ = f.Close() // a profile that is cut short does not parse
	}, nil
}

func (c *clients) say(what string, r *clientsResult) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.Encode(clientsMessage{Said: what, Result: r})
}

func (c *clients) next(lines *bufio.Reader, into any) error {
	line, err := lines.ReadBytes('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(line, into)
}

// join brings all members to the barrier.
func (c *clients) join() error {
	const atOnce = 64
	slots := make(chan struct{}, atOnce)
	errs := make(chan error, len(c.order.Members))
	var work sync.WaitGroup
	for _, in := range c.order.Members {
		slots <- struct{}{}
		c.released.Add(1)
		work.Go(func() {
			errs <- c.member(in)
			<-slots
		})
	}
	work.Wait()
	close(errs)
	var all error
	for err := range errs {
		all = errors.Join(all, err)
	}
	return all
}

// member joins one member. It acknowledges the first generation, unless it is the last.
func (c *clients) member(in registry.Instance) error {
	address, err := registry.ParseAddress(c.order.Registry)
	if err != nil {
		return err
	}
	client, err := consul.Open(consul.Config{Address: address, Times: c.order.Facts.Times, Logger: slog.New(c)})
	if err != nil {
		return err
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return err
	}
	rank := c.order.Facts.Rank(registry.Directive{}, in)
	world := c.order.Facts.World(registry.Directive{})
	me := conductor.Newcomer{
		App: c.order.Facts.App, Run: c.order.Facts.Run, Digest: c.order.Digest, Facts: c.order.Facts, Instance: &in,
		Record: registry.AppRecord{
			Run: c.order.Facts.Run, Digest: c.order.Digest, Token: "bench", Created: time.Now(),
			Counts: map[string]int{in.Component: world},
		},
		Member: registry.Member{
			Run: c.order.Facts.Run, Inc: fmt.Sprintf("%s-%d", in, os.Getpid()), Addr: "127.0.0.1",
			Process: registry.Process{Machine: "bench", Boot: string(boot[:36]), PidNS: "bench", Pid: os.Getpid(), Start: uint64(rank)},
			Digest:  c.order.Digest,
		},
	}
	var hooks consul.Hooks
	if c.order.Peers {
		hooks.Roster = status.AskRoster
	}
	waits, released := make(chan struct{}), make(chan registry.Directive, 1)
	var once, onceRun sync.Once
	membership, err := client.Join(context.Background(), me, hooks, func(e registry.Event) {
		d, ok := e.(registry.DirectiveSeen)
		switch {
		case ok && d.Directive.Act == registry.ActWait:
			once.Do(func() { close(waits) })
		case ok && d.Directive.Act == registry.ActRun:
			onceRun.Do(func() { released <- d.Directive })
		}
	})
	if err != nil {
		return fmt.Errorf("%s: %w", in, err)
	}
	peer := ""
	if c.order.Peers && registry.Serves(rank, world) {
		if peer, err = servePeers(membership); err != nil {
			return err
		}
	}
	go c.start(membership, released)
	<-waits
	if c.order.Last != nil && in == *c.order.Last {
		c.last = membership
		return nil
	}
	return acknowledge(membership, peer)
}

// servePeers answers the peers of a member as its agent would.
func servePeers(membership *consul.Membership) (address string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	source := status.Source{Roster: membership.GiveRoster}
	id, err := status.NewPeerIdentity(membership.Token(), membership.Record().Run, membership.Instance().String())
	if err != nil {
		return "", err
	}
	handler, log := status.PeerHandler(source, membership.Token()), slog.New(slog.DiscardHandler)
	go func() { _ = status.ServePeers(context.Background(), l, id, handler, log) }()
	return registry.JoinPeer(l.Addr().String(), id.Key), nil
}

// acknowledge writes what an agent writes: one port, one export, its sockets and folders.
func acknowledge(membership *consul.Membership, peer string) error {
	in := membership.Instance()
	return membership.Acknowledge(context.Background(), 1, func(m *registry.Member) {
		port := 20000 + in.Index
		m.Address, m.Ports = fmt.Sprintf("127.0.0.1:%d", port), map[string]int{"muster.port": port}
		m.Exports = map[string]string{"exports.address": m.Address}
		m.API, m.Peer = "/run/muster/"+in.String()+".sock", peer
		m.WorkDir, m.Attempt = "/var/lib/muster/bench/"+in.String(), 1
		m.Guard = &registry.ProcessRef{Pid: 4711, Start: 1}
	})
}

// start waits for the release and reads the roster, as an agent does before it starts its process.
func (c *clients) start(membership *consul.Membership, released <-chan registry.Directive) {
	defer c.released.Done()
	d := <-released
	at := time.Now().UnixNano()
	_, err := membership.Roster(context.Background(), d.Roster)
	for again := 0; err != nil && again < 100; again++ {
		time.Sleep(500 * time.Millisecond) // as the agent does
		_, err = membership.Roster(context.Background(), d.Roster)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done(at, time.Now().UnixNano())
	if err != nil {
		c.result.Failed = fmt.Sprintf("%s: %v", membership.Instance(), err)
	}
}

// Enabled makes clients the log's handler of their members.
func (c *clients) Enabled(context.Context, slog.Level) bool { return true }

// WithAttrs is a part of a handler.
func (c *clients) WithAttrs([]slog.Attr) slog.Handler { return c }

// WithGroup is a part of a handler.
func (c *clients) WithGroup(string) slog.Handler { return c }

// Handle notes what the conductor among the members sees, and who reads the roster from the registry.
func (c *clients) Handle(_ context.Context, r slog.Record) error {
	switch r.Message {
	case lastMissing:
		last := fmt.Sprintf("[worker-%d]", c.order.Count-1)
		seen := false
		r.Attrs(func(a slog.Attr) bool {
			seen = seen || a.Key == "missing" && a.Value.String() == last
			return true
		})
		if seen {
			return c.say("seen", nil)
		}
	case "roster not read from a peer":
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.result.Fallen++; c.result.Fallen == 1 {
			r.Attrs(func(a slog.Attr) bool {
				c.result.Why += a.String() + " "
				return true
			})
		}
	}
	return nil
}

// lastMissing is what a conductor logs when it waits for few members, and which they are.
const lastMissing = "barrier waits for the last members"

// done notes when a member saw the release and had the roster; with the mutex held.
func (c *clients) done(released, verified int64) {
	if c.result.First == 0 {
		c.result.First = released
	}
	c.result.First = min(c.result.First, released)
	c.result.Released, c.result.Verified = max(c.result.Released, released), max(c.result.Verified, verified)
}

// ownCPU is the user and system time of this process so far.
func ownCPU() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // it never fails
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// watchPrefix is the obvious way to a barrier: each member writes a key, and all watch the prefix until every key is
// there. What they read then is the roster.
func (c *clients) watchPrefix(lines *bufio.Reader) error {
	record := []byte(strings.Repeat(rand.Text(), 24)) // as long as what a member publishes, and packs as well
	put := func(client *http.Client, in registry.Instance) error {
		return do(client, http.MethodPut, fmt.Sprintf("%s%d", c.order.Prefix, in.Index), record, nil)
	}
	all := make([]*http.Client, len(c.order.Members))
	var last *http.Client
	for i, in := range c.order.Members {
		all[i] = &http.Client{Transport: &http.Transport{MaxConnsPerHost: 2, MaxIdleConnsPerHost: 2}}
		if c.order.Last != nil && in == *c.order.Last {
			last = all[i]
		} else if err := put(all[i], in); err != nil {
			return err
		}
	}
	// The arrivals before would wake every member that watches: only the last one counts here.
	if err := c.say("written", nil); err != nil {
		return err
	}
	var watch string
	if err := c.next(lines, &watch); err != nil {
		return err
	}
	armed := make(chan error, len(all))
	for _, client := range all {
		c.released.Add(1)
		go c.awaitPrefix(client, armed)
	}
	for range c.order.Members {
		if err := <-armed; err != nil {
			return err
		}
	}
	if err := c.say("waiting", nil); err != nil {
		return err
	}
	var arrive string
	if err := c.next(lines, &arrive); err != nil {
		return err
	}
	before := ownCPU()
	if last != nil {
		c.result.Arrived = time.Now().UnixNano()
		if err := put(last, *c.order.Last); err != nil {
			return err
		}
	}
	c.released.Wait()
	c.result.CPU = ownCPU() - before
	if err := c.say("done", &c.result); err != nil {
		return err
	}
	_, _ = lines.ReadString('\n') // until this process is told to end
	return nil
}

func (c *clients) awaitPrefix(client *http.Client, armed chan<- error) {
	defer c.released.Done()
	index := "0"
	for {
		var keys []struct {
			Key   string
			Value []byte
		}
		next := ""
		err := do(client, http.MethodGet, c.order.Prefix+"?recurse&wait=300s&index="+index, nil, func(r *http.Response) error {
			next = r.Header.Get("X-Consul-Index")
			return json.NewDecoder(r.Body).Decode(&keys)
		})
		if index == "0" {
			armed <- err
		}
		if err == nil && len(keys) == c.order.Count {
			at := time.Now().UnixNano()
			c.mu.Lock()
			defer c.mu.Unlock()
			c.done(at, at)
			return
		}
		if err == nil {
			index = next
		}
	}
}
