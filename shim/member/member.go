package member

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/ports"
	"github.com/muster-agent/muster/shim/sandbox/proc"
	"github.com/muster-agent/muster/shim/status"
)

// Config is what a Member is made of. Nothing of it changes while the agent lives.
type Config struct {
	App      appdef.App
	AppID    string
	Run      string
	NewRun   bool // a finished run of another name may be followed by this one
	Digest   string
	Build    string // version of this program
	Inc      string // this agent's incarnation
	Claim    Claim
	Host     Host
	Registry registry.Address
	Client   *consul.Client
	Times    registry.Times
	State    status.Dir
	WorkDir  string
	Listen   Listen
	Loop     *machine.Agent
	Log      *slog.Logger
	Hooks    Hooks
}

// Claim says which index is claimed.
type Claim struct {
	Instance  *registry.Instance // nil: a free one
	Component string             // of the free one; "": any
	Rank      int                // the launcher's place in the whole gang; -1: none
	Slot      string             // launcher.Found.Slot
}

// Host is where the agent runs and what the launcher granted it.
type Host struct {
	Self       proc.Facts
	Allocation plan.Allocation
}

// Listen says where peer agents are answered.
type Listen struct {
	Address string       // HOST:PORT; "": a port of Ports, where peers may be on other hosts
	Ports   ports.Ranges // that the agent may take ports from
}

// Container is this instance's container as the other rooms have prepared it.
type Container struct {
	Plan  plan.Plan
	Ports map[string]int       // by name; the Member does not change it
	Guard *registry.ProcessRef // for the agent that has to clean up after this one
	Logs  string               // the instance's log folder, where scripts may ask for it; else empty
}

// Hooks are what the other rooms of the agent do at the steps of a membership. Only Warn and Mended may be called
// with a lock held: they must not call the Member.
type Hooks struct {
	Container func() Container
	Request   func(registry.Instance) plan.Request // the plan's question for an instance
	ClearDead func(context.Context)                // removes what killed agents left on this host
	// KillLeft kills what the agent of that incarnation, or another dead one of the instance, has left of its processes
	// on this host, by its own record. known tells whether there was such a record.
	KillLeft func(ctx context.Context, in registry.Instance, inc string) (known bool, err error)

	// Here are the checkpoints that this instance has.
	Here func(context.Context, machine.State) *registry.Here
	// Resume prepares the checkpoint that the instance's generation starts from.
	Resume func(context.Context, machine.State)
	// Save answers an interim save that the directive asks for.
	Save func(registry.Directive)
	// Settle is called before the index is left, Conclude after it.
	Settle, Conclude func(context.Context, machine.State)
	// AfterVerdict is called when a join was refused, perhaps because the run has ended.
	AfterVerdict func(ctx context.Context, refusal error)

	Warn, Mended func(kind, text string) // a warning to the user, and its end
	Changed      func()                  // the status for the service manager has changed
}

// Member is this agent in its gang.
type Member struct {
	cfg     Config
	fence   Fence
	adopter adopter
	probe   probe
	absent  absentees
	peerAPI peerAPI

	mu         sync.Mutex
	membership *consul.Membership // nil before the claim
	waits      []status.Wait      // for whom this agent waits as the conductor
	roster     registry.Roster
	rosterText []byte // the sealed bytes, as the process finds them
	rosterID   string
	discovery  *discovery
}

// New makes a member that holds no index yet. The caller ends it with Close; ctx may end before.
func New(ctx context.Context, c Config) *Member {
	m := &Member{cfg: c}
	dial := dialer{app: c.AppID, host: c.Host.Allocation.Host, token: m.token}
	m.fence.cfg = fenceConfig{
		appID: c.AppID, inc: c.Inc, times: c.Times, loop: c.Loop, log: c.Log, dial: dial.dial,
		roster: m.lastRoster, keep: m.keepAgain,
	}
	m.fence.due = make(chan struct{}, 1)
	m.probe = probe{cfg: probeConfig{
		appID: c.AppID, host: c.Host.Allocation.Host, apart: m.mustBeApart, token: m.token,
		record: m.recordFindings, warn: c.Hooks.Warn, mended: c.Hooks.Mended, log: c.Log,
	}, reached: map[string]bool{}, news: make(chan struct{}, 1)}
	m.absent.ask, m.absent.changed = m.askWhoIsAbsent, c.Hooks.Changed
	m.absent.begin = func() (context.Context, context.CancelFunc) {
		return context.WithTimeout(context.WithoutCancel(ctx), absentPatience)
	}
	m.adopter = adopter{every: c.Times.Renew, adopt: m.Adopt, log: c.Log}
	m.peerAPI = peerAPI{listen: c.Listen, host: c.Host.Allocation.Host, log: c.Log}
	return m
}

// Withdraw takes back what other hosts see of this agent: its services, and the API for peer agents. Call it before
// Close.
func (m *Member) Withdraw() {
	m.probe.close()
	if d := m.services(); d != nil {
		d.close()
	}
	m.peerAPI.close()
}

// Resign ends the membership and writes nothing: the registry learns of it when the session expires. Leaving is an
// effect of the machine; by the time it has ended the index was left, if it could be.
func (m *Member) Resign() {
	if held := m.Membership(); held != nil {
		held.Close()
	}
}

// Close ends the partition guard and the questions to the registry.
func (m *Member) Close() {
	m.adopter.close()
	m.fence.close()
	m.absent.close()
}

// Membership is the index that this agent holds; nil before the claim.
func (m *Member) Membership() *consul.Membership {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.membership
}

// adoptTime limits an adoption: a few requests to the registry.
const adoptTime = 10 * time.Second

// Adopt writes the app's data again into a registry that has lost it.
func (m *Member) Adopt(ctx context.Context) (status.Adopted, error) {
	membership := m.Membership()
	if membership == nil {
		return status.Adopted{}, errors.New("this agent holds no index")
	}
	ctx, cancel := context.WithTimeout(ctx, adoptTime)
	defer cancel()
	_, read := m.Roster()
	d, err := membership.Adopt(ctx, read)
	return status.Adopted{Run: d.Run, Gen: d.Gen, Act: string(d.Act)}, err
}

// Founded is when the app was founded that this agent is a member of; zero before the claim.
func (m *Member) Founded() time.Time {
	if held := m.Membership(); held != nil {
		return held.Founded()
	}
	return time.Time{}
}

// Previous is the record that the index had before the claim; nil: none.
func (m *Member) Previous() *registry.Member {
	if held := m.Membership(); held != nil {
		return held.Previous()
	}
	return nil
}

// Roster is the roster that was read last, with its sealed bytes.
func (m *Member) Roster() (roster registry.Roster, text []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.roster, m.rosterText
}

func (m *Member) lastRoster() (roster registry.Roster, id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.roster, m.rosterID
}

// keepAgain keeps a roster that was written again for the generation of the last one. The machine may have read that of
// the next generation meanwhile.
func (m *Member) keepAgain(roster registry.Roster, text []byte, id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.roster.Run == roster.Run && m.roster.Gen == roster.Gen {
		m.roster, m.rosterText, m.rosterID = roster, text, id
	}
}

func (m *Member) keepRoster(roster registry.Roster, text []byte, id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.roster, m.rosterText, m.rosterID = roster, text, id
}

// Waits are the members that this agent waits for as the conductor.
func (m *Member) Waits() []status.Wait {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.waits
}

// Fence is the partition guard of this member.
func (m *Member) Fence() *Fence { return &m.fence }

// Counts are the instances of each component as the gang has them, or prepares to have them in a flex that adds some;
// nil before the claim. A component without instances is left out and keeps the definition's count: what follows from
// the counts by default, the scope of restarts, must be the same for all agents of the gang.
func (m *Member) Counts() map[string]int {
	held := m.Membership()
	if held == nil {
		return nil
	}
	d := held.Directive()
	counts := maps.Clone(d.Counts)
	for name, n := range d.Target {
		counts[name] = max(counts[name], n)
	}
	maps.DeleteFunc(counts, func(_ string, n int) bool { return n == 0 })
	return counts
}

// token is what the agents of the run show each other.
func (m *Member) token() string { return m.Membership().Token() }

func (m *Member) services() *discovery {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.discovery
}
