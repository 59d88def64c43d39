package gang

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/muster-agent/muster/registry"
)

// key is one key of the app in Consul, without the prefix muster/APP/.
type key struct {
	value   []byte
	session string
}

// keys reads all keys of the app, past muster.
func (g *gang) keys() map[string]key {
	g.t.Helper()
	all, err := g.readKeys()
	if err != nil {
		g.t.Fatal(err)
	}
	return all
}

func (g *gang) readKeys() (all map[string]key, err error) {
	prefix := "muster/" + g.app + "/"
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+g.place.consul.HTTPAddr+"/v1/kv/"+prefix+"?recurse", nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	all = map[string]key{}
	if resp.StatusCode == http.StatusNotFound {
		return all, nil
	}
	var pairs []struct {
		Key, Session string
		Value        []byte
	}
	if err := json.Unmarshal(text, &pairs); err != nil {
		return nil, fmt.Errorf("keys: %s: %w: %q", resp.Status, err, text)
	}
	for _, p := range pairs {
		all[strings.TrimPrefix(p.Key, prefix)] = key{p.Value, p.Session}
	}
	return all, nil
}

// directive is the directive as it stands, and whether somebody conducts.
func (g *gang) directive() (d registry.Directive, conducted bool) {
	g.t.Helper()
	k := g.keys()["directive"]
	g.decode("directive", k.value, &d)
	return d, k.session != ""
}

// member is the record of an instance.
func (g *gang) member(instance string) (m registry.Member) {
	g.t.Helper()
	in, err := registry.ParseInstance(instance)
	if err != nil {
		g.t.Fatal(err)
	}
	path := fmt.Sprintf("members/%s/%d", in.Component, in.Index)
	g.decode(path, g.keys()[path].value, &m)
	return m
}

func (g *gang) decode(what string, text []byte, into any) {
	g.t.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		g.t.Fatalf("%s: %v: %q", what, err, text)
	}
}

// conductor is the instance whose agent conducts.
func (g *gang) conductor() string {
	g.t.Helper()
	found := ""
	await(g.t, "a conductor that is a member", func() bool {
		d, conducted := g.directive()
		if !conducted {
			return false
		}
		for _, in := range g.def.instances() {
			if g.member(in).Inc == d.By {
				found = in
			}
		}
		return found != ""
	})
	return found
}
