package consul

import (
	"strconv"
	"strings"

	"github.com/muster-agent/muster/registry"
)

// root is the folder of all apps.
const root = "muster/"

// keys are the names of one app's keys.
type keys struct{ base string }

func keysOf(app string) keys { return keys{base: root + app + "/"} }

func (k keys) app() string       { return k.base + "app" }
func (k keys) directive() string { return k.base + "directive" }
func (k keys) members() string   { return k.base + "members/" }
func (k keys) lives() string     { return k.base + "live/" }
func (k keys) asks() string      { return k.base + "ask/" }
func (k keys) rosters() string   { return k.base + "roster/" }
func (k keys) readies() string   { return k.base + "ready/" }

func (k keys) member(i registry.Instance) string     { return k.members() + path(i) }
func (k keys) live(i registry.Instance) string       { return k.lives() + path(i) }
func (k keys) checkpoint(i registry.Instance) string { return k.checkpoints() + path(i) }
func (k keys) checkpoints() string                   { return k.base + "checkpoint/" }
func (k keys) common() string                        { return k.base + "common" }
func (k keys) verdict(run string) string             { return k.base + "verdict/" + run }
func (k keys) ask(kind, id string) string            { return k.asks() + kind + "/" + id }
func (k keys) grant(i registry.Instance, id string) string {
	return k.base + "grant/" + path(i) + "/" + id
}

func (k keys) login(fingerprint string) string { return k.base + "login/" + fingerprint }

func (k keys) roster(id string, chunk int) string {
	return k.rosters() + id + "/" + strconv.Itoa(chunk)
}
func (k keys) defs(id string) string { return k.base + "def/" + id + "/" }
func (k keys) def(id string, chunk int) string {
	return k.defs(id) + strconv.Itoa(chunk)
}
func (k keys) ready(gen int) string { return k.readies() + strconv.Itoa(gen) + "/" }
func (k keys) readyOf(gen int, i registry.Instance) string {
	return k.ready(gen) + path(i)
}

func path(i registry.Instance) string { return i.Component + "/" + strconv.Itoa(i.Index) }

// instanceAt reads the instance that a key under prefix names.
func instanceAt(prefix, key string) (registry.Instance, bool) {
	rest, ok := strings.CutPrefix(key, prefix)
	if !ok {
		return registry.Instance{}, false
	}
	component, index, ok := strings.Cut(rest, "/")
	if !ok || component == "" {
		return registry.Instance{}, false
	}
	n, err := strconv.Atoi(index)
	if err != nil || n < 0 {
		return registry.Instance{}, false
	}
	return registry.Instance{Component: component, Index: n}, true
}

// instancesAt reads the instances of a listing and skips other keys.
func instancesAt(prefix string, names []string) []registry.Instance {
	out := make([]registry.Instance, 0, len(names))
	for _, name := range names {
		if i, ok := instanceAt(prefix, name); ok {
			out = append(out, i)
		}
	}
	return out
}
