package member

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/launcher"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/sandbox/proc"
	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/shim/wording"
)

// join claims an index.
func (m *Member) join(ctx context.Context) machine.Event {
	me, err := m.me()
	if err != nil {
		return machine.Event{Kind: machine.Refused, Code: exit.Internal, Cause: err.Error()}
	}
	hooks := consul.Hooks{Alive: Dead, Clean: m.clean, Answers: m.answers, Roster: status.AskRoster}
	held, err := m.cfg.Client.Join(ctx, me, hooks, m.report)
	if err != nil {
		m.cfg.Hooks.AfterVerdict(ctx, err)
		return m.refused(m.explained(ctx, err))
	}
	m.mu.Lock()
	m.membership = held
	m.mu.Unlock()
	m.fence.watch(ctx, held, me.Facts)
	m.adopter.watch(ctx, held)
	record, in, directive := held.Record(), held.Instance(), held.Directive()
	m.cfg.Hooks.Save(directive)
	join := machine.Join{Instance: in, Attempt: max(0, record.Attempt-1), Budget: record.Budget}
	join.Spent = record.Phase == registry.PhaseFailed
	if c := m.cfg.App.Component(in.Component); c != nil {
		join.Service = c.Settings.Role == appdef.RoleService
	}
	return machine.Event{Kind: machine.Joined, Joined: &join, Directive: &directive}
}

// mostDifferences is how many differences of a definition a refusal names.
const mostDifferences = 5

// explained adds to the refusal of another definition what it differs in.
func (m *Member) explained(ctx context.Context, err error) error {
	if _, differs := errors.AsType[*conductor.DigestError](err); !differs {
		return err
	}
	st, asked := m.cfg.Client.Status(ctx, m.cfg.AppID)
	if asked != nil {
		return err
	}
	packed, asked := m.cfg.Client.Definition(ctx, m.cfg.AppID, st.App)
	if asked != nil {
		return err
	}
	theirs, unreadable := appdef.Decode(packed)
	names := appdef.Differences(m.cfg.App, theirs)
	if unreadable != nil || len(names) == 0 {
		return err
	}
	return fmt.Errorf("%w; they differ in %s", err, wording.First(names, mostDifferences))
}

// refused turns a refusal into the code that the launcher acts on.
func (m *Member) refused(err error) machine.Event {
	e := machine.Event{Kind: machine.Refused, Code: exit.Registry, Cause: err.Error()}
	var held *conductor.HeldError
	var digest *conductor.DigestError
	var times *conductor.TimesError
	var proto *conductor.ProtoError
	var run *conductor.RunError
	var over *conductor.FinishedError
	var index *conductor.IndexError
	switch {
	case errors.As(err, &held), errors.As(err, &run):
		e.Code = exit.Held
	case errors.As(err, &digest), errors.As(err, &proto):
		e.Code = exit.Definition
	case errors.As(err, &index), errors.As(err, &times):
		e.Code = exit.Usage
	case errors.As(err, &over):
		me, v := "", over.Verdict
		if in := m.cfg.Claim.Instance; in != nil {
			me = in.String()
		}
		e.Code, e.Class = exit.Of(v, me), v.Class
		outcome := exit.WithCause(string(v.Outcome), v.Cause)
		e.Cause = fmt.Sprintf("run %s is over: %s; --run NAME begins a new one, muster forget %s frees the name", v.Run,
			outcome, m.cfg.AppID)
	case errors.Is(err, registry.ErrForbidden):
		e.Code, e.Cause = exit.Forbidden, e.Cause+"; "+consul.TokenRemedy(m.cfg.AppID)
	case errors.Is(err, registry.ErrMalformed):
		e.Code, e.Class = exit.Internal, registry.ClassMuster
	}
	return e
}

// launchedBy is the user in whose name this agent runs: the launcher's, which may run all as one user of the host, or
// the host's.
func launchedBy() string {
	if name := os.Getenv("USER"); name != "" {
		return name
	}
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return strconv.Itoa(os.Getuid())
}

// me describes this agent to the registry when it joins.
func (m *Member) me() (conductor.Newcomer, error) {
	c, self, granted := m.cfg, m.cfg.Host.Self, m.cfg.Host.Allocation
	facts := plan.Gang(c.App, c.Hooks.Request(registry.Instance{}))
	facts.Times, facts.Barrier = c.Times, c.Times.Barrier
	def, err := appdef.Encode(c.App)
	if err != nil {
		return conductor.Newcomer{}, err
	}
	hostname, _ := os.Hostname() // for display
	now := status.Stamp(time.Now())
	me := conductor.Newcomer{
		App: c.AppID, Run: c.Run, NewRun: c.NewRun, Digest: c.Digest, Facts: facts,
		Digests: m.digests(), Speaks: registry.Spoken(),
		Launcher: launcher.Name(granted.Launcher).Relaunches(), Instance: c.Claim.Instance,
		Record: registry.AppRecord{
			Run: c.Run, Digest: c.Digest, Def: def, Counts: c.App.Counts(),
			Created: now, By: c.Inc, User: launchedBy(), Token: newToken(),
		},
		Member: registry.Member{
			Run: c.Run, Inc: c.Inc, Addr: granted.Host, Host: hostname,
			Process: registry.Process{
				Machine: self.Machine, Boot: self.Boot, PidNS: self.PidNS, Pid: self.PID, Start: self.Start,
				Slot: c.Claim.Slot,
			},
			Digest: c.Digest,
			Origin: registry.Origin{
				Launcher: granted.Launcher, ContainerID: granted.ContainerID, Since: now,
				Build: c.Build, Proto: registry.Spoken().Now,
			},
		},
	}
	if me.Instance != nil {
		return me, nil
	}
	for _, in := range plan.Instances(&c.App) {
		if c.Claim.Component == "" || in.Component == c.Claim.Component {
			me.Claimable = append(me.Claimable, in)
		}
	}
	if rank := c.Claim.Rank; rank >= 0 && rank < len(me.Claimable) && c.Claim.Component == "" {
		me.Instance = &me.Claimable[rank] // Slurm's PROCID is the rank
	}
	return me, nil
}

// digests are the definition's digests in the forms of runs that other builds may have founded.
func (m *Member) digests() map[int]string {
	digests, speaks := map[int]string{}, registry.Spoken()
	for v := 1; v <= speaks.Now; v++ {
		if v != speaks.Min {
			digests[v] = appdef.DigestIn(m.cfg.App, v)
		}
	}
	return digests
}

// newToken is what the founder of a run has its agents show each other.
func newToken() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

// Dead tells whether the process of a holder on this host is proved dead, and what was seen.
func Dead(m registry.Member) (bool, string) {
	facts := proc.Facts{Machine: m.Machine, Boot: m.Boot, PidNS: m.PidNS, PID: m.Pid, Start: m.Start}
	live, err := proc.Host{}.Alive(facts)
	if err != nil {
		return false, err.Error()
	}
	return live == proc.Dead, live.String()
}

// guardPatience is how long a guard that only the registry names may take to end by itself: it follows its agent.
const guardPatience = 2 * time.Second

// clean kills what a dead agent of this index left on this host, by that agent's own record. The registry's record is
// no more than a hint: whoever may write it could name any process of the host.
func (m *Member) clean(ctx context.Context, in registry.Instance, before registry.Member) error {
	known, err := m.cfg.Hooks.KillLeft(ctx, in, before.Inc)
	if err != nil {
		m.cfg.Log.Warn("leftovers of the previous agent not cleared", "pid", before.Pid, "err", err)
	}
	m.cfg.Hooks.ClearDead(ctx) // it has died since this agent looked
	if !known {
		m.leaveAlone(ctx, in, before)
	}
	return err
}

// leaveAlone tells the operator of a living process that the registry names and this host's own records do not.
func (m *Member) leaveAlone(ctx context.Context, in registry.Instance, before registry.Member) {
	if before.Guard == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, guardPatience)
	defer cancel()
	named := proc.Facts{
		Machine: before.Machine, Boot: before.Boot, PidNS: before.PidNS,
		PID: before.Guard.Pid, Start: before.Guard.Start,
	}
	for pass := 0; ; pass++ {
		live, err := proc.Host{}.AliveHere(named)
		if err != nil || live != proc.Alive {
			return
		}
		if !proc.Pause(ctx, pass) {
			break
		}
	}
	m.cfg.Log.Warn("process named by the registry left alone", "instance", in.String(), "pid", named.PID,
		"why", "no record below this agent's state folder names it as the guard of that instance",
		"remedy", "if it is a guard of muster, it ends with its agent; else look who writes the app's keys")
}

// answerPatience bounds the question to a holder's agent.
const answerPatience = 2 * time.Second

// answers asks the holder's agent: by its socket on this host, else at its address for peer agents.
func (m *Member) answers(ctx context.Context, in registry.Instance, holder registry.Member, token string) bool {
	ctx, cancel := context.WithTimeout(ctx, answerPatience)
	defer cancel()
	is := func(c *status.Client) bool {
		defer c.Close()
		st, err := c.State(ctx)
		return err == nil && st.Inc == holder.Inc
	}
	if holder.Machine == m.cfg.Host.Self.Machine && holder.API != "" {
		if c, err := status.DialRecorded(holder.API, m.cfg.AppID, in.String()); err == nil && is(c) {
			return true
		}
	}
	return holder.Peer != "" && is(status.DialPeer(holder.Peer, token))
}
