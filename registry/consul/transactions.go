package consul

import (
	"slices"

	"github.com/hashicorp/consul/api"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
)

// All that is written into the registry is written by these transactions: each does everything or nothing. Only the
// chunks of large definitions and rosters are written before, one by one: they are named by their content, and nobody
// reads them until a record names them. doc/protocol.md prints the transactions (make golden) and says why they have
// the checks that they have.

type ops = []*api.TxnOp

// Consul takes 128 operations in a transaction.
const (
	checkedLives = 120 // live keys of which a deletion can check that they are absent
	oldRosters   = 100 // keys of rosters that one clean-up deletes
)

// look is T1: all that a newcomer's decision about an index needs.
func (k keys) look(in registry.Instance, run string) ops {
	return ops{
		opGetOrEmpty(k.app()), opGetOrEmpty(k.directive()), opGetOrEmpty(k.member(in)), opGetOrEmpty(k.live(in)),
		opGetOrEmpty(k.checkpoint(in)), opGetOrEmpty(k.verdict(run)),
		opGetTree(k.asks() + registry.AskGone + "/"),
	}
}

// found is T2: the directive exists before any agent waits for it, and has a conductor from the start. there checks the
// chunks of a definition that does not fit into the record.
func (k keys) found(session string, app, directive []byte, there ops) ops {
	return slices.Concat(there, ops{
		opCAS(k.app(), 0, app),
		opCAS(k.directive(), 0, directive),
		opLock(k.directive(), session, directive),
	})
}

// claim is T3. deserted: nobody takes part in the run; what was asked of others goes.
func (k keys) claim(d conductor.Claim, session string, record []byte, deserted bool) ops {
	unheld := opIndex(k.member(d.Instance), d.MembersIndex)
	if d.MembersIndex == 0 {
		unheld = opAbsent(k.member(d.Instance))
	}
	all := ops{
		opIndex(k.directive(), d.DirectiveIndex),
		unheld,
		opAbsent(k.live(d.Instance)),
		opLock(k.live(d.Instance), session, []byte(d.Record.Inc)),
		opCAS(k.member(d.Instance), d.MembersIndex, record),
		opGet(k.directive()),
	}
	if deserted {
		all = append(all, opDropAsks(k)...)
	}
	return all
}

// record writes the own record, and what goes with it.
func (k keys) record(in registry.Instance, session string, index uint64, record []byte, with ops) ops {
	return slices.Concat(ops{
		opSession(k.live(in), session),
		opCAS(k.member(in), index, record),
	}, with)
}

// acknowledge is the rest of T4: before is the generation that was acknowledged last, 0: none.
func (k keys) acknowledge(in registry.Instance, session string, gen, before int) ops {
	all := ops{opLock(k.readyOf(gen, in), session, nil)}
	if before > 0 && before != gen {
		all = append(all, opDelete(k.readyOf(before, in)))
	}
	return all
}

// unready is the rest of T10: the acknowledgement of a generation is taken back.
func (k keys) unready(in registry.Instance, gen int) ops {
	if gen == 0 {
		return nil
	}
	return ops{opDelete(k.readyOf(gen, in))}
}

// direct is T11, and with more in between T5 and T12 (the verdict, which is written once).
func (k keys) direct(session string, index uint64, directive []byte, with ops) ops {
	return slices.Concat(
		ops{opSession(k.directive(), session), opIndex(k.directive(), index)},
		with,
		ops{opLock(k.directive(), session, directive)})
}

// elect is T6. deserted: nobody takes part in the run.
func (k keys) elect(session string, index uint64, directive []byte, deserted bool) ops {
	all := ops{opIndex(k.directive(), index), opLock(k.directive(), session, directive)}
	if deserted {
		all = append(all, opDropAsks(k)...)
	}
	return all
}

// lost is T7, for several members at once.
func (k keys) lost(session string, all []conductor.Lost) ops {
	list := ops{opSession(k.directive(), session)}
	for _, e := range all {
		list = append(list, opAbsent(k.live(e.Instance)), opCAS(k.member(e.Instance), e.Index, encode(e.Member)))
	}
	return list
}

// attach is T9. ready is the generation that the record acknowledges, 0: none.
func (k keys) attach(in registry.Instance, session string, index uint64, inc string, ready int) ops {
	all := ops{opIndex(k.member(in), index), opLock(k.live(in), session, []byte(inc))}
	if ready > 0 {
		all = append(all, opLock(k.readyOf(ready, in), session, nil))
	}
	return all
}

// rewrite writes an own record again that the registry has lost (index 0) or has an older copy of. around: its
// acknowledgement, made again or taken back.
func (k keys) rewrite(in registry.Instance, directive, index uint64, record []byte, around ops) ops {
	return append(ops{opIndex(k.directive(), directive), opCAS(k.member(in), index, record)}, around...)
}

// mine is the check of every beat: the index is this agent's, and its record is as it wrote it last.
func (k keys) mine(in registry.Instance, session string, index uint64) ops {
	return ops{opSession(k.live(in), session), opIndex(k.member(in), index)}
}

// commitSteps is T13. A commit that is still under way after T4 is refused by the record's index.
func (k keys) commitSteps(in registry.Instance, session string, member, index uint64, checkpoint []byte) ops {
	return ops{
		opSession(k.live(in), session),
		opIndex(k.member(in), member),
		opCAS(k.checkpoint(in), index, checkpoint),
	}
}

// publishCommon writes the step that all members' checkpoints share.
func (k keys) publishCommon(session string, common []byte) ops {
	return ops{opSession(k.directive(), session), opSet(k.common(), common)}
}

// newRun is T15, and T6 with it: nobody conducts, and from here on this agent does. free are indexes that nobody may
// hold; there is as for found; old is a definition that nobody reads any more, "": none.
func (k keys) newRun(
	session, run string, index, app uint64, record, directive []byte, there ops, old string, free []registry.Instance,
) ops {
	all := slices.Concat(there, ops{
		opIndex(k.directive(), index),
		opCAS(k.app(), app, record),
		opLock(k.directive(), session, directive),
		opAbsent(k.verdict(run)),
	}, opDropAsks(k))
	if old != "" {
		all = append(all, opDeleteTree(k.defs(old)))
	}
	for _, in := range free[:min(len(free), mostOps-len(all))] {
		all = append(all, opAbsent(k.live(in)))
	}
	return all
}

// stepDown is T16: an unlock wakes all agents and leaves no lock delay.
func (k keys) stepDown(session string, index uint64, directive []byte) ops {
	return ops{opIndex(k.directive(), index), opUnlock(k.directive(), session, directive)}
}

// adopt writes an app's data again. app, directive and verdict are the indexes of what is there, 0: nothing; there
// checks chunks of the definition and of the roster. A verdict that is there stays; while the run goes on it has none.
func (k keys) adopt(app, directive, verdict uint64, record []byte, d registry.Directive, there ops) ops {
	all := slices.Concat(there, ops{opCAS(k.app(), app, record), opCAS(k.directive(), directive, encode(d))})
	switch {
	case verdict != 0:
		return append(all, opIndex(k.verdict(d.Run), verdict))
	case d.Verdict != nil:
		return append(all, opCAS(k.verdict(d.Run), 0, encode(*d.Verdict)))
	}
	return append(all, opAbsent(k.verdict(d.Run)))
}

// put stores a request to the gang, whose directive has that index.
func (k keys) put(a registry.Ask, index uint64) ops {
	return ops{
		opIndex(k.directive(), index),
		opSet(k.ask(a.Kind, a.ID), encode(a)),
	}
}

// drop deletes a request that was served, or that nobody can serve.
func (k keys) drop(session string, a registry.Ask) ops {
	return ops{opSession(k.directive(), session), opDelete(k.ask(a.Kind, a.ID))}
}

// cleanUp follows a verdict. rosters are the keys of those that nobody reads any more.
func (k keys) cleanUp(session string, rosters []string) ops {
	all := ops{opSession(k.directive(), session), opDeleteTree(k.readies()), opDeleteTree(k.asks())}
	for _, name := range rosters[:min(len(rosters), oldRosters)] {
		all = append(all, opDelete(name))
	}
	return all
}

// forget removes an app of which no index is held, as far as one transaction can check that.
func (k keys) forget(index uint64, counts map[string]int) ops {
	all := ops{opIndex(k.directive(), index)}
	for component, n := range counts {
		for i := range min(n, checkedLives-len(all)) {
			all = append(all, opAbsent(k.live(registry.Instance{Component: component, Index: i})))
		}
	}
	return append(all, opDeleteTree(k.base))
}
