package flags

import (
	"os"
	"sync"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/hadoop"
	"github.com/muster-agent/muster/shim/history"
	"github.com/muster-agent/muster/shim/policy"
)

// History say where ended runs are read. Verbs that do not register it read none.
type History struct {
	URL string
	Run string // "": the last one of an app

	opened *opened // nil: not registered
}

// opened is the store once it was asked for.
type opened struct {
	once  sync.Once
	store *history.Store
	err   error
}

// Register adds the flag.
func (f *History) Register(set Set) {
	f.opened = &opened{}
	set.StringVar(&f.URL, "history", "",
		"ask the history store at this `URL` alone (default: the policy's, for apps that are found nowhere else)")
}

// RegisterRun adds the flag of verbs that show one run.
func (f *History) RegisterRun(set Set) {
	set.StringVar(&f.Run, "run", "", "with --history: an earlier run of the app (default: its last one)")
}

// past opens the store once: a page asks it again and again.
func (f *History) past() (apps.Past, error) {
	if f.Run != "" && f.URL == "" {
		return apps.Past{}, exit.Usagef("--run %s without --history: elsewhere an app has one run", f.Run)
	}
	store, err := f.open()
	return apps.Past{Store: store, Alone: f.URL != "", Run: f.Run}, err
}

// open opens the store that the flag names, else the environment's or the policy's; nil: there is none. A policy that
// names none that can be is another's to mend.
func (f *History) open() (*history.Store, error) {
	if f.opened == nil {
		return nil, nil //nolint:nilnil // none is no error
	}
	f.opened.once.Do(func() {
		p, err := f.rules()
		if err == nil && p.History.Store != "" {
			f.opened.store = history.New(p.History.Store, hadoop.Login{}.Stores(nil))
		}
		if _, _, named := f.named(); named {
			f.opened.err = err
		}
	})
	return f.opened.store, f.opened.err
}

// rules are the flag's, else the environment's, else those of the host's policy.
func (f *History) rules() (policy.Policy, error) {
	if place, url, named := f.named(); named {
		return policy.Policy{}.WithHistory(place, url, "")
	}
	return policy.Examine(policy.DefaultFile, false)
}

// named is the store that the flag names, or the environment, and which of them does.
func (f *History) named() (place, url string, ok bool) {
	if f.URL != "" {
		return "--history", f.URL, true
	}
	url = os.Getenv(HistoryVariable)
	return HistoryVariable, url, url != ""
}

// Bounded is the store that the flag names, and how much of it is kept: as the host's policy says, if it is its own.
func (f *History) Bounded() (*history.Store, history.Bound, error) {
	p, err := f.rules()
	if err != nil {
		return nil, history.Bound{}, err
	}
	own, err := policy.Examine(policy.DefaultFile, false)
	if err == nil && own.History.Store == p.History.Store {
		p = own
	}
	k := p.History.Keep
	return history.New(p.History.Store, hadoop.Login{}.Stores(nil)), history.Bound{Age: k.Limit, Bytes: k.Bytes}, nil
}
