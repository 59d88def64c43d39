package render

import (
	"slices"
	"strconv"
	"strings"
)

// flagsOf are the flags that some launchers alone have a word for, and what the others have in its place.
var flagsOf = []struct {
	flag    string
	value   func(Options) string // what it says; empty: it was not given
	instead string
}{
	{
		"--token-secret", func(o Options) string { return o.TokenSecret },
		"the agents have no token by it; --token-file names a file on the hosts",
	},
	{"--namespace", func(o Options) string { return o.Namespace }, ""},
	{"--region", func(o Options) string { return o.Region }, ""},
	{"--datacenter", func(o Options) string { return strings.Join(o.Datacenters, ", ") }, ""},
	{"--driver", func(o Options) string { return o.Driver }, ""},
	{"--image", func(o Options) string { return o.Image }, "muster.image is a component's own"},
	{"--user", func(o Options) string { return o.User }, "agents run as who has submitted the job"},
	{"--privileged", func(o Options) string { return given(o.Privileged) }, ""},
	{"--driver-memory", func(o Options) string { return number(o.MasterMemoryMB) }, "there is no ApplicationMaster"},
	{"--driver-cores", func(o Options) string { return number(o.MasterVCores) }, "there is no ApplicationMaster"},
}

// loseFlags tells of the flags that say nothing to this launcher, and which of all they are for.
func (w *Writer) loseFlags(all []Launcher) {
	for _, f := range flagsOf {
		value := f.value(w.Options)
		if value == "" || slices.Contains(w.launcher.Flags, f.flag) {
			continue
		}
		line := f.flag
		if value != on {
			line += " " + value
		}
		other := func(l Launcher) bool { return !slices.Contains(l.Flags, f.flag) }
		takers := slices.DeleteFunc(slices.Clone(all), other)
		line += ": it is of " + strings.Join(names(takers), ", ")
		if f.instead != "" {
			line += "; " + f.instead
		}
		w.Cannot("%s", line)
	}
}

// on is the value of a switch that was given.
const on = "true"

func given(is bool) string {
	if is {
		return on
	}
	return ""
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}
