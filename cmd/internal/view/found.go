package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/member"
	"github.com/muster-agent/muster/shim/status"
)

// mostFinders is how many of those who could not reach a member are named.
const mostFinders = 5

// foundWarnings are what members have found of each other, by whom it is about. What was found of an earlier agent, or
// by one that is gone, says nothing of now.
func foundWarnings(st *consul.Status) map[string][]status.Warning {
	if st == nil {
		return nil
	}
	holders := map[registry.Instance]consul.MemberStatus{}
	for _, m := range st.Members {
		holders[m.Instance] = m
	}
	type lack struct {
		addr  string
		by    []string
		since time.Time
	}
	out, lacks := map[string][]status.Warning{}, map[registry.Instance]*lack{}
	for _, m := range st.Members {
		for _, f := range m.Found {
			about := holders[f.About]
			switch {
			case !m.Live || !about.Live || about.Inc != f.Inc:
			case f.Kind == registry.NotApart:
				out[f.About.String()] = append(out[f.About.String()],
					status.Warning{Kind: member.WarnTogether, Text: member.TogetherText(f.Addr, f.Why), Since: f.Since})
			case f.Kind == registry.NotReached:
				l := lacks[f.About]
				if l == nil {
					l = &lack{addr: f.Addr, since: f.Since}
					lacks[f.About] = l
				}
				if f.Since.Before(l.since) {
					l.since = f.Since
				}
				l.by = append(l.by, fmt.Sprintf("%s at %s (%s)", m.Instance, cmp.Or(m.Addr, m.Host), f.Why))
			}
		}
	}
	for in, l := range lacks {
		by := l.by
		if more := len(by) - mostFinders; more > 0 {
			by = append(slices.Clone(by[:mostFinders]), fmt.Sprintf("%d others", more))
		}
		text := fmt.Sprintf("its agent cannot be reached at %s by %s; %s", l.addr, strings.Join(by, ", "),
			member.ReachRemedy)
		out[in.String()] = append(out[in.String()], status.Warning{
			Kind: member.WarnUnreachable, Text: text,
			Since: l.since,
		})
	}
	return out
}

// warned is a row with what others have found of it, beside what its own agent says.
func warned(row status.Instance, found []status.Warning) status.Instance {
	for _, w := range found {
		if w.Kind == member.WarnTogether && slices.ContainsFunc(row.Warnings, func(own status.Warning) bool {
			return own.Kind == w.Kind
		}) {
			continue
		}
		row.Warnings = append(slices.Clip(row.Warnings), w)
	}
	return row
}
