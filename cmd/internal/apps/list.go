package apps

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/status"
)

// List are the apps of this host and, where a registry was named, its own: the newest first.
func (k Lookup) List(ctx context.Context) ([]Row, error) {
	known, err := k.State.Apps()
	if err != nil {
		return nil, exit.With(exit.Forbidden, err)
	}
	there := map[string]*consul.Status{}
	if !k.Address.IsZero() {
		if there, err = k.inRegistry(ctx); err != nil {
			return nil, err
		}
	}
	rows := []Row{}
	for _, app := range known {
		f, err := k.OnHost(ctx, app.App)
		if err != nil {
			return nil, err
		}
		if f.Local == nil { // forgotten meanwhile
			continue
		}
		f.Address = app.Registry
		if st := there[app.App]; st != nil && sameRegistry(app.Registry, k.Address) {
			f.heard(st)
			delete(there, app.App)
		}
		rows = append(rows, rowOf(f))
	}
	for id, st := range there {
		rows = append(rows, rowOf(Facts{ID: id, Address: k.Address, Registry: st}))
	}
	slices.SortStableFunc(rows, newestFirst)
	return rows, nil
}

func newestFirst(a, b Row) int {
	switch {
	case a.Started == nil || b.Started == nil:
		return strings.Compare(a.App, b.App)
	case !a.Started.Equal(*b.Started):
		return b.Started.Compare(*a.Started)
	}
	return strings.Compare(a.App, b.App)
}

// sameRegistry tells whether an app's own registry is the one asked. One host has many names; an app
// of the same id in another registry is rare, an alias is not.
func sameRegistry(own, asked registry.Address) bool {
	_, ownSocket := own.Socket()
	_, askedSocket := asked.Socket()
	return own == asked || !ownSocket && !askedSocket
}

func (k Lookup) inRegistry(ctx context.Context) (map[string]*consul.Status, error) {
	c, err := Open(k.Address)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, listPatience)
	defer cancel()
	all, err := c.Apps(ctx)
	if err != nil {
		return nil, RegistryError(k.Address, err)
	}
	found := map[string]*consul.Status{}
	for i := range all {
		found[all[i].ID] = &all[i]
	}
	return found, nil
}

// listPatience bounds the listing of all apps of a registry: one read each.
const listPatience = time.Minute

func rowOf(f Facts) Row {
	row := Row{App: f.ID, Name: f.Name(), Phase: f.Phase(), Outcome: f.Outcome(), Registry: f.Address.String()}
	if f.Here() {
		row.WorkDir = f.Local.WorkDir
	}
	if at := f.Started(); !at.IsZero() {
		row.Started = new(status.Stamp(at))
	}
	return row
}

// Row is one line of muster ps.
type Row struct {
	App      string     `json:"app"`
	Name     string     `json:"name"`
	Phase    string     `json:"phase"`
	Outcome  *string    `json:"outcome"`
	Started  *time.Time `json:"started"`
	Registry string     `json:"registry"`
	WorkDir  string     `json:"work_dir"` // empty: not started on this host
}
