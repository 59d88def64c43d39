package consul

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/muster-agent/muster/registry"
)

// holders are the instances of the app in whose names others hold sessions, which outlive the keys that they lock;
// where there is a directive, those of which the registry does not know that they hold their index. All is read with
// consistency: a server that was just elected answers default reads before it has read its log, as if nobody held
// anything.
func (j *joining) holders(ctx context.Context, directed bool) ([]string, error) {
	all, _, err := j.calls.sessions(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	held := map[registry.Instance]string{} // their sessions
	for _, s := range all {
		who, of := strings.CutPrefix(s.Name, sessionName(j.me.App, ""))
		if !of || who == conductorSession || s.ID == j.session {
			continue
		}
		names = append(names, who)
		if in, err := registry.ParseInstance(who); err == nil {
			held[in] = s.ID
		}
	}
	if directed {
		for some := range slices.Chunk(slices.Collect(maps.Keys(held)), mostOps/2) {
			known, err := j.known(ctx, some, held)
			if err != nil {
				return nil, err
			}
			names = slices.DeleteFunc(names, func(who string) bool { return slices.Contains(known, who) })
		}
	}
	slices.Sort(names)
	return names, nil
}

// known are those of some instances whose live keys are locked by these sessions, for the agents that have the records.
// A member whose data went back locks its live key too, but beside the record of a predecessor.
func (j *joining) known(
	ctx context.Context, some []registry.Instance, sessions map[registry.Instance]string,
) (names []string, err error) {
	var at []string
	for _, in := range some {
		at = append(at, j.keys.live(in), j.keys.member(in))
	}
	res, err := j.calls.readKeys(ctx, consistent, at...)
	if err != nil {
		return nil, err
	}
	for _, in := range some {
		live, pair := res.at(j.keys.live(in)), res.at(j.keys.member(in))
		if live == nil || pair == nil || live.Session != sessions[in] {
			continue
		}
		m, err := decode[registry.Member](pair.Key, pair.Value)
		if err != nil {
			return nil, err
		}
		if m.Inc == string(live.Value) {
			names = append(names, in.String())
		}
	}
	return names, nil
}
