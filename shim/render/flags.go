package render

import (
	"slices"
	"strconv"
	"strings"
)

// flagsOf are the flags that some launchers alone have a word for, and what the others have in its place.
var flagsOf = []struct {
	flag      string
	value     func(Options) string // what it says; empty: it was not given
	launchers []string
	instead   string
}{
	{"--token-secret", func(o Options) string { return o.TokenSecret }, []string{Kubernetes}, "the agents have no token by it; --token-file names a file on the hosts"},
	{"--namespace", func(o Options) string { return o.Namespace }, []string{Kubernetes, Nomad}, ""},
	{"--region", func(o Options) string { return o.Region }, []string{Nomad}, ""},
	{"--datacenter", func(o Options) string { return strings.Join(o.Datacenters, ", ") }, []string{Nomad}, ""},
	{"--driver", func(o Options) string { return o.Driver }, []string{Nomad}, ""},
	{"--image", func(o Options) string { return o.Image }, []string{Kubernetes}, "muster.image is a component's own"},
	{"--user", func(o Options) string { return o.User }, []string{Kubernetes, Nomad, Systemd}, "agents run as who has submitted the job"},
	{"--privileged", func(o Options) string { return given(o.Privileged) }, []string{Systemd}, ""},
	{"--driver-memory", func(o Options) string { return number(o.MasterMemoryMB) }, []string{YARN}, "there is no ApplicationMaster"},
	{"--driver-cores", func(o Options) string { return number(o.MasterVCores) }, []string{YARN}, "there is no ApplicationMaster"},
}

// loseFlags tells of the flags that say nothing to this launcher.
func (w *writer) loseFlags() {
	for _, f := range flagsOf {
		value := f.value(w.o)
		if value == "" || slices.Contains(f.launchers, w.launcher) {
			continue
		}
		line := f.flag
		if value != on {
			line += " " + value
		}
		line += ": it is of " + strings.Join(f.launchers, ", ")
		if f.instead != "" {
			line += "; " + f.instead
		}
		w.lose("%s", line)
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
