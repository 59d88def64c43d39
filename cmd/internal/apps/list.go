package apps

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/shim/wording"
)

// Listing is the answer of muster ps --json, and of the page for all apps.
type Listing struct {
	Version int   `json:"version"`
	Apps    []Row `json:"apps"`
	// Warnings say what is missing, on the page alone: ps has a stream for them.
	Warnings []string `json:"warnings,omitempty"`
}

// List are the apps of this host and, where a registry was named, its own: the newest first.
func (k Lookup) List(ctx context.Context) ([]Row, error) {
	if k.Past.Alone {
		return k.pastRows(ctx, true)
	}
	if k.Page != nil {
		return k.rowsOfPage(ctx)
	}
	now := time.Now()
	all, rows, err := k.all(ctx, now)
	if err != nil {
		return nil, err
	}
	for _, f := range all {
		row := rowOf(f, now)
		if f.Local == nil && f.Registry != nil {
			k.Over.keep(row, f.Registry.Index, now)
		}
		rows = append(rows, row)
	}
	if k.Past.Listed {
		patient, cancel := context.WithTimeout(ctx, pastPatience)
		defer cancel()
		all, err := k.listPast(patient, rows)
		if err == nil {
			return all, nil
		}
		fmt.Fprintf(k.Warn, "the history store does not answer (%v): these are the apps that there are\n", err)
	}
	slices.SortStableFunc(rows, newestFirst)
	return rows, nil
}

// pastPatience is how long a list of apps waits for the history store.
const pastPatience = 10 * time.Second

// NoApps says where it was looked for apps when there is none, or none whose run goes on.
func (k Lookup) NoApps(running bool) string {
	where := "on this host; --registry consul://HOST:PORT asks a registry, and --ui URL a page"
	switch {
	case k.Past.Alone:
		return "no runs in the history store " + k.Past.Store.URL + ", or none that this user may read"
	case k.Page != nil:
		where = "on the page that was asked"
	case !k.Address.IsZero():
		where = "on this host and in registry " + k.Address.String()
	}
	if others := k.otherUsers(); len(others) > 0 && k.Page == nil {
		where += fmt.Sprintf("; other users have apps here: --state-dir %s", others[0])
		if more := len(others) - 1; more > 0 {
			where += fmt.Sprintf(" (and %d more)", more)
		}
	}
	if running {
		return "nothing runs " + where
	}
	return "no apps " + where
}

// All are the facts about the apps that List lists, in no order.
func (k Lookup) All(ctx context.Context) ([]Facts, error) {
	k.Over = nil
	all, _, err := k.all(ctx, time.Now())
	return all, err
}

// all are the facts about all apps, but for those that are over, and were read before: these come as rows.
func (k Lookup) all(ctx context.Context, now time.Time) (all []Facts, over []Row, err error) {
	known, err := k.State.Apps()
	if err != nil {
		return nil, nil, exit.With(exit.Forbidden, err)
	}
	over = []Row{}
	there := map[string]*consul.Status{}
	if !k.Address.IsZero() {
		here := map[string]bool{}
		for _, app := range known {
			here[app.App] = true
		}
		var before []Row
		if there, before, err = k.inRegistry(ctx, here, now); err != nil {
			return nil, nil, err
		}
		over = append(over, before...)
	}
	for _, app := range known {
		f, err := k.OnHost(ctx, app.App)
		if err != nil {
			fmt.Fprintf(k.Warn, "%v: it is left out\n", err)
			continue
		}
		if f.Local == nil { // forgotten meanwhile
			continue
		}
		f.Address = app.Registry
		if st := there[app.App]; st != nil && sameRegistry(app.Registry, k.Address) {
			f.heard(st)
			delete(there, app.App)
		}
		all = append(all, f)
	}
	for id, st := range there {
		all = append(all, Facts{ID: id, Address: k.Address, Registry: st})
	}
	return all, over, nil
}

// ListAlso adds the apps of another state folder of this host, whose own word comes before that of a registry or a
// store. What may not be read there has none.
func (k Lookup) ListAlso(ctx context.Context, rows []Row, state status.Dir) []Row {
	k.State, k.Address, k.Past = state, registry.Address{}, Past{}
	more, err := k.List(ctx)
	if err != nil || len(more) == 0 {
		return rows
	}
	rows = slices.DeleteFunc(rows, func(r Row) bool {
		return slices.ContainsFunc(more, func(own Row) bool { return own.App == r.App })
	})
	rows = append(rows, more...)
	slices.SortStableFunc(rows, newestFirst)
	return rows
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

// inRegistry reads the apps of the registry that was named; those that are over, and were read before, come as rows.
func (k Lookup) inRegistry(
	ctx context.Context, here map[string]bool, now time.Time,
) (there map[string]*consul.Status, over []Row, err error) {
	c, err := Open(k.Address)
	if err != nil {
		return nil, nil, err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, listPatience)
	defer cancel()
	alive, err := c.Alive(ctx)
	if err != nil && !errors.Is(err, registry.ErrForbidden) {
		return nil, nil, RegistryError(k.Address, err)
	}
	doubtful := k.Over.wake(alive, err == nil, now)
	unchanged, err := c.Unchanged(ctx, doubtful)
	if err != nil {
		return nil, nil, RegistryError(k.Address, err)
	}
	k.Over.check(doubtful, unchanged, now)
	var odd []error
	all, broken, err := c.Apps(ctx, func(app string) bool {
		if !appdef.ValidName(app) {
			odd = append(odd, fmt.Errorf("key muster/%s: this is no name of an app", app))
			return true
		}
		row, ok := k.Over.row(app)
		if ok = ok && !here[app]; ok {
			over = append(over, row)
		}
		return ok
	})
	if err != nil {
		return nil, nil, RegistryError(k.Address, err)
	}
	LeftOut(k.Warn, "registry "+k.Address.String(), append(broken, odd...))
	there = map[string]*consul.Status{}
	for i := range all {
		there[all[i].ID] = &all[i]
	}
	return there, over, nil
}

// LeftOut names what a registry or a history store has that cannot be read: whoever may write there can put it there.
func LeftOut(warn io.Writer, where string, odd []error) {
	const most = 5
	for _, err := range odd[:min(len(odd), most)] {
		text := wording.Printable(wording.Short(err.Error()))
		fmt.Fprintf(warn, "%s: %s: left out until it is mended or removed\n", where, text)
	}
	if more := len(odd) - most; more > 0 {
		fmt.Fprintf(warn, "%s: %s more left out\n", where, appdef.Counted(more, "record"))
	}
}

// listPatience bounds the listing of all apps of a registry: one read each.
const listPatience = time.Minute

func rowOf(f Facts, now time.Time) Row {
	row := Row{App: f.ID, Name: f.Name(), Phase: f.Phase(), Outcome: f.Outcome(), Registry: f.Address.String()}
	if f.Here() {
		row.WorkDir = f.Local.WorkDir
		row.Owner = f.Owner
	}
	row.Live = len(f.States)
	row.User = row.Owner
	row.Seconds = f.lasted(now)
	row.reservation = reserved(f.Registry, row.Seconds)
	if f.Registry != nil {
		row.Live = f.Registry.Live
		row.User, row.Launcher = cmp.Or(f.Registry.App.User, row.Owner), launcherOf(f.Registry)
	}
	if at := f.Started(); !at.IsZero() {
		row.Started = new(status.Stamp(at))
	}
	return row
}

// owner is the user who owns the app's folder of state.
func (k Lookup) owner(id string) string {
	info, err := os.Stat(k.State.App(id))
	if err != nil {
		return ""
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	number := strconv.FormatUint(uint64(st.Uid), 10)
	if u, err := user.LookupId(number); err == nil {
		return u.Username
	}
	return number
}

// lasted is how many seconds the run has lasted: until now while it lives, else until its end as far as that is known.
func (f *Facts) lasted(now time.Time) *float64 {
	started := f.Started()
	var took float64
	switch v := f.Verdict(); {
	case f.Result != nil && f.Here() && (v == nil || !f.dated()):
		took = f.Result.Times.Total
	case started.IsZero():
		return nil
	case v != nil && !v.At.IsZero():
		took = v.At.Sub(started).Seconds()
	case f.Outcome() == nil:
		took = now.Sub(started).Seconds()
	}
	if took <= 0 {
		return nil
	}
	took = math.Round(took*1000) / 1000
	return &took
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
	Live     int        `json:"live"`     // instances with a living agent
	// Seconds is how long the run has lasted, or lasted; null: not known.
	Seconds  *float64 `json:"seconds"`
	User     string   `json:"user"`     // who launched it; empty: not known
	Launcher string   `json:"launcher"` // empty: not known
	reservation
	// Owner is the user of this host who started it; empty: not started on this host.
	Owner string `json:"owner"`
	// Run is set for runs of the history store alone, which has all runs of an app.
	Run string `json:"run,omitempty"`
}

// reservation is what the limits of a run's instances add up to, and that over the time that it has lasted; null: not
// known.
type reservation struct {
	GPUs        *int     `json:"gpus"`
	Cores       *int     `json:"cores"`
	MB          *int     `json:"mb"`
	GPUSeconds  *float64 `json:"gpu_seconds"`
	CoreSeconds *float64 `json:"core_seconds"`
	MBSeconds   *float64 `json:"mb_seconds"`
}

// reserved is what is set aside for the instances that there are, for so many seconds. A component without a limit has
// what its launcher grants, which is not known here.
func reserved(st *consul.Status, seconds *float64) reservation {
	if st == nil || seconds == nil {
		return reservation{}
	}
	app := Definition(st.App)
	if len(app.Components) == 0 {
		return reservation{}
	}
	app = app.WithCounts(st.Directive.Counts)
	gpus, cores, megabytes := 0, 0, 0
	known := true
	for _, c := range app.Components {
		gpus += c.Instances * c.Limits.GPUs
		cores += c.Instances * max(0, c.Limits.VCores)
		megabytes += c.Instances * max(0, c.Limits.MemoryMB)
		known = known && c.Limits.MemoryMB >= 0 && c.Limits.VCores >= 0
	}
	r := reservation{GPUs: &gpus, GPUSeconds: new(float64(gpus) * *seconds)}
	if known {
		r.Cores, r.MB = &cores, &megabytes
		r.CoreSeconds, r.MBSeconds = new(float64(cores)**seconds), new(float64(megabytes)**seconds)
	}
	return r
}

// launcherOf is the launcher of a run's first member that names one.
func launcherOf(st *consul.Status) string {
	for _, m := range st.Members {
		if m.Launcher != "" {
			return m.Launcher
		}
	}
	return ""
}

// Running tells whether the run is neither over nor interrupted.
func (r Row) Running() bool { return r.Outcome == nil }
