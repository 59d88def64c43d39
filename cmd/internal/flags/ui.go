package flags

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/cmd/internal/remote"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
)

// The page's address, and what proves to it who asks.
const (
	uiVariable        = "MUSTER_UI"
	uiTokenVariable   = "MUSTER_UI_TOKEN"
	uiTokenVariableOf = "MUSTER_UI_TOKEN_FILE"
)

// ui says which page of muster ui is asked in place of a registry. Verbs that do not register it ask none.
type ui struct {
	url, tokenFile string

	registered bool
}

// Register adds the flags.
func (f *ui) Register(set Set) {
	f.registered = true
	set.StringVar(&f.url, "ui", "",
		"ask the page at this `URL`, and neither a registry nor this host (default: "+uiVariable+")")
	set.StringVar(&f.tokenFile, "ui-token-file", "",
		"`FILE` with the token for the page, mode 0600 (default: "+uiTokenVariableOf+", "+uiTokenVariable+")")
}

// through has a lookup ask the page that is named: by a flag whatever this host knows, by the environment for what it
// does not know. Without a token the environment's page is only where runs are seen.
func (f *Ask) through(k *apps.Lookup, what string) error {
	if !f.UI.registered {
		return nil
	}
	given := f.UI.url != ""
	token, err := f.UI.token()
	url := cmp.Or(f.UI.url, os.Getenv(uiVariable))
	switch {
	case given && (f.Registry.Address != "" || f.History.URL != ""):
		return exit.Usagef("--ui %s: --registry and --history are for what this host asks itself: want one of the "+
			"three", url)
	case f.UI.tokenFile != "" && url == "":
		return exit.Usagef("--ui-token-file %s: want --ui URL or %s, the page that knows it", f.UI.tokenFile,
			uiVariable)
	case !given && (url == "" || token == "" && err == nil || f.Registry.Address != "" || f.History.URL != "" ||
		knownHere(*k, what)):
		return nil
	case err != nil:
		return err
	case token == "":
		return exit.Usagef("--ui %s: want a token in %s, or in a file of mode 0600 that --ui-token-file or %s names; "+
			"the page's operator makes one with muster ui token", url, uiTokenVariable, uiTokenVariableOf)
	}
	c, err := remote.Open(url, token)
	if err != nil {
		return err
	}
	if given {
		k.State = apps.NoState
	}
	k.Page, k.Named, k.Address, k.Fallback, k.Past = c, true, registry.Address{}, nil, apps.Past{}
	return nil
}

// knownHere tells that this host knows the app that a word names: APP, APP/INSTANCE, or an instance of its newest.
func knownHere(k apps.Lookup, word string) bool {
	if word == "" {
		return false
	}
	app, _, _ := strings.Cut(word, "/")
	if _, known := startOf(k.State, app); known {
		return true
	}
	_, err := registry.ParseInstance(word)
	all, unread := k.State.Apps()
	return err == nil && unread == nil && len(all) > 0
}

// token is the secret that the page knows its user by; "": none is given. One in a file is its owner's alone.
func (f *ui) token() (string, error) {
	path := cmp.Or(f.tokenFile, os.Getenv(uiTokenVariableOf))
	if path == "" {
		return tokenForm(uiTokenVariable, os.Getenv(uiTokenVariable))
	}
	file, err := os.Open(path)
	if err != nil {
		return "", exit.Usagef("token for the page: %w", err)
	}
	defer file.Close()
	at, err := file.Stat()
	if err != nil {
		return "", exit.Usagef("token for the page: %w", err)
	}
	owner, ok := at.Sys().(*syscall.Stat_t)
	if mode := at.Mode().Perm(); !at.Mode().IsRegular() || mode&0o077 != 0 || ok && int(owner.Uid) != os.Geteuid() {
		return "", exit.With(exit.Forbidden, fmt.Errorf("token for the page: %s has mode %#o or another owner: others "+
			"could act with it; want a file of your own: chmod 600 %[1]s", path, mode))
	}
	text := make([]byte, mostToken+1)
	n, err := file.Read(text)
	if err != nil && n == 0 {
		return "", exit.Usagef("token for the page: %s: %w", path, errors.Join(errEmpty, err))
	}
	return tokenForm(path, string(text[:n]))
}

var errEmpty = errors.New("no token is in it")

// mostToken is how long a token may be, in bytes.
const mostToken = 4 << 10

// tokenForm is a token without the blanks around it. What could not stand in a header is none.
func tokenForm(from, text string) (string, error) {
	text = strings.TrimSpace(text)
	strange := func(r rune) bool { return r <= ' ' || r > '~' }
	if len(text) > mostToken || strings.ContainsFunc(text, strange) {
		return "", exit.Usagef("token for the page: %s has more than a token: want one word, as muster ui token "+
			"prints it", from)
	}
	return text, nil
}
