package hboxjob

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/moby/sys/user"
)

// account is the user that this process runs as, as Java finds it: in the user database, whatever USER and HOME say.
// Package os/user would not do: muster is built without the C library's lookups, and that package takes USER where
// /etc/passwd has no line.
type account struct {
	uid    int
	passwd string // the file

	looked     bool
	name, home string
	unknown    error // what was asked for and nobody knows
}

// getentPatience bounds the lookup in a directory such as LDAP.
const getentPatience = 10 * time.Second

// getenv gives a variable, or what Java calls user.name and user.home.
func (a *account) getenv(ctx context.Context) func(name string) string {
	return func(name string) string {
		switch name {
		case "user.name":
			a.look(ctx)
			return a.known(name, a.name, "USER")
		case "user.home":
			a.look(ctx)
			return a.known(name, a.home, "HOME")
		}
		return os.Getenv(name)
	}
}

// known is what the user database has, else the variable.
func (a *account) known(property, inDatabase, variable string) string {
	found := cmp.Or(inDatabase, os.Getenv(variable))
	if found == "" {
		a.unknown = fmt.Errorf("it asks for ${%s}, and neither %s nor getent knows user %d: set %s", property, a.passwd,
			a.uid, variable)
	}
	return found
}

// look looks into the file, then has getent ask the services of nsswitch.conf; once.
func (a *account) look(ctx context.Context) {
	if a.looked {
		return
	}
	a.looked = true
	own := func(u user.User) bool { return u.Uid == a.uid }
	all, err := user.ParsePasswdFileFilter(a.passwd, own)
	if err != nil || len(all) == 0 {
		ctx, cancel := context.WithTimeout(ctx, getentPatience)
		defer cancel()
		cmd := exec.CommandContext(ctx, "getent", "passwd", strconv.Itoa(a.uid))
		cmd.WaitDelay = time.Second
		said, err := cmd.Output()
		if err != nil {
			return
		}
		all, _ = user.ParsePasswdFilter(bytes.NewReader(said), own)
	}
	if len(all) > 0 {
		a.name, a.home = all[0].Name, all[0].Home
	}
}
