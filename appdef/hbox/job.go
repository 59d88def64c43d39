package hbox

import (
	"slices"

	"github.com/muster-agent/muster/appdef"
)

// job is the App of one command line in the making.
type job struct {
	*line

	draft   *appdef.Draft
	kind    kind
	single  bool // the processes know nothing of each other
	roles   []role
	workers int      // as asked for, chief and evaluator included
	handed  []string // confs that formats of the user's get
}

// said tells whether --conf muster.X sets a key of a component, empty for the app.
func (j *job) said(component, key string) bool {
	return slices.ContainsFunc(j.ours, func(s setting) bool {
		return s.key == key && (s.component == "" || s.component == component)
	})
}

// ourText is what --conf muster.X gives a key of a component: its own before the app's, the last of several; empty:
// nothing.
func (j *job) ourText(component, key string) string {
	for _, of := range []string{component, ""} {
		for _, s := range slices.Backward(j.ours) {
			if s.key == key && s.component == of {
				return s.Text
			}
		}
	}
	return ""
}

// global and own set keys of appConfig, limit one of resources, unless the command line sets them itself.
func (j *job) global(key, text string, at appdef.Place) { j.own("", key, text, at) }

func (j *job) own(component, key, text string, at appdef.Place) {
	if !j.said(component, key) {
		j.draft.Set(component, key, text, at)
		j.from(component, key, at)
	}
}

// from notes the source of a value that is the administrator's.
func (j *job) from(component, key string, at appdef.Place) {
	if component != "" {
		key = component + "." + key
	}
	if ofSite(at) {
		j.draft.App.Site[key] = at.String()
	} else {
		delete(j.draft.App.Site, key)
	}
}

func (j *job) limit(component, key, text string, at appdef.Place) {
	if !j.said(component, key) {
		j.draft.Resource(component, key, text, at)
		j.from(component, key, at)
	}
}

// prefix is the name of a role in options.
func (j *job) prefix(r role) string {
	if r.name == rolePS || r.name == roleScheduler {
		return rolePS
	}
	return roleWorker
}
