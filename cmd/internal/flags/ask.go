package flags

import (
	"io"
	"strings"

	"github.com/muster-agent/muster/cmd/internal/apps"
)

// Ask are those of every verb that asks about an app: which registry, which state folder.
type Ask struct {
	Registry Registry
	State    State
	History  History
	UI       ui
}

// Register adds the flags.
func (f *Ask) Register(flags Set) {
	flags.StringVar(&f.Registry.Address, "registry", "",
		"registry of the app (default: the one that the app was started with)")
	f.State.Register(flags)
}

// Lookup is where these flags say to look for what, which is APP, APP/INSTANCE, or "" for all apps. Warnings go to
// warn.
func (f *Ask) Lookup(what string, warn io.Writer) (apps.Lookup, error) {
	app, _, _ := strings.Cut(what, "/")
	k := apps.Lookup{
		State: f.State.of(app), Fallback: f.Registry.Resolve,
		Named: f.Registry.Named(), Warn: warn,
	}
	var err error
	if f.Registry.Address != "" {
		k.Address, err = f.Registry.Resolve()
	}
	if err == nil {
		k.Past, err = f.History.past()
	}
	if err == nil {
		err = f.through(&k, what)
	}
	return k, err
}

// Must is for calls that fail only when the program is wrong.
func Must(err error) {
	if err != nil {
		panic(err)
	}
}
