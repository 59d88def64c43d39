package slider

import "github.com/muster-agent/muster/appdef"

// override applies what the command line changes, before anything is validated: --set, then --instances; within each
// the last wins.
func (l *loading) override() {
	for _, arg := range l.options.Set {
		c, ok, found := appdef.ParseSet(arg, l.app.ComponentNames())
		l.found = append(l.found, found...)
		if ok {
			l.unread(c)
			l.change(c)
		}
	}
	for _, arg := range l.options.Instances {
		changes, found := appdef.ParseInstances(arg, l.app.ComponentNames())
		l.found = append(l.found, found...)
		for _, c := range changes {
			l.change(c)
		}
	}
}

func (l *loading) change(c appdef.Change) {
	if c.Client {
		l.app.Vars[c.Key] = c.Text
		return
	}
	into, other := l.appConfig, l.resources
	if c.Resource {
		into, other = l.resources, l.appConfig
	}
	into.set(c.Component, c.Key, c.Value)
	if c.Ours() {
		other.unset(c.Component, c.Key) // the command line's value is the only one at its level
	}
}
