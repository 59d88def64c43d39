package policy

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/ownfolder"
)

// DefaultFile is where the operator of a host says what jobs may have beyond the defaults.
const DefaultFile = "/etc/muster/policy.json"

// Policy is what the operator of a host permits and forbids. What a definition says can widen none of it.
type Policy struct {
	Version int `json:"version"`
	// RefuseRoot refuses a process that would be root of the host on the host's own root; nil: it is refused.
	RefuseRoot *bool `json:"refuse_root"`
	// Userns is whose ids the processes of an agent that is root have: private or host; "": private.
	Userns string `json:"userns"`
	// Mounts are folders of the host that every container sees.
	Mounts []Mount `json:"mounts"`
	// Roots are folders of the host that definitions may name.
	Roots []Root `json:"roots"`
	// Users are whom definitions may have their processes run as.
	Users userRules `json:"users"`
	// SecretEnv are the agent's variables that definitions may name as secrets: NAME, or PREFIX_*.
	SecretEnv []string `json:"secret_env"`
	// SecretKeyring are the agent's keys that definitions may name as secrets: NAME, or PREFIX_*.
	SecretKeyring []string `json:"secret_keyring"`
	// SecretFiles are files of the host that definitions may name as secrets whoever may read them: PATH, or DIR/* for
	// all below a folder.
	SecretFiles []string `json:"secret_files"`
	// Ulimits are the limits of setrlimit(2) that definitions may raise although they tell on the whole host.
	Ulimits []string `json:"ulimits"`
	kernelRules
	// SSH permits instances an ssh server; nil: it does.
	SSH *bool `json:"ssh"`
	elsewhere
	// Notify says whom agents tell of the events of apps.
	Notify notifyRules `json:"notify"`
	// packageRules says which app packages may run.
	Packages packageRules `json:"packages"`

	// File is where the policy was read.
	File string `json:"-"`
	// has are the fields that stand in the file.
	has []string
}

// kernelRules are what the kernel holds processes by.
type kernelRules struct {
	// Seccomp says which system calls processes may make.
	Seccomp seccompRules `json:"seccomp"`
	// Capabilities says what a root may do beyond the default set.
	Capabilities capabilityRules `json:"capabilities"`
	// Label names what the kernel's security modules hold containers by.
	Label labelRules `json:"label"`
}

// PermitsSSH tells whether instances may have ssh servers.
func (p Policy) PermitsSSH() bool { return p.SSH == nil || *p.SSH }

// Mount is one folder of the host; To is where a container sees it, by default at the same place.
type Mount struct {
	Path     string `json:"path"`
	To       string `json:"to"`
	ReadOnly bool   `json:"read_only"`
}

// Read reads the operator's file; none is a policy without exceptions. A file that others than
// root and the agent's own user may write is refused, and so is one that a user names in place of the host's own.
func Read(path string, named bool) (Policy, error) {
	if named {
		if err := replaces(path, DefaultFile, os.Geteuid()); err != nil {
			return Policy{File: path}, exit.With(exit.Forbidden, err)
		}
	}
	return Examine(path, named)
}

// replaces refuses a policy in place of the host's, unless root or the owner of the host's names it.
func replaces(path, host string, euid int) error {
	var own, other unix.Stat_t
	err := unix.Stat(host, &own)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && int(own.Uid) == euid {
		return nil
	}
	if err == nil && unix.Stat(path, &other) == nil && own.Dev == other.Dev && own.Ino == other.Ino {
		return nil
	}
	return fmt.Errorf("--policy %s: this host has a policy of its own, %s, which only its owner can replace; leave "+
		"--policy out", path, host)
}

// Examine reads a policy that nothing runs under.
func Examine(path string, named bool) (Policy, error) {
	p := Policy{File: path}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) && !named {
		return p, nil
	}
	switch {
	case err == nil && !info.Mode().IsRegular():
		err = errors.New("want a file: another user could write to a pipe or a device, or put one in its place")
	case err == nil:
		err = trusted(path)
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return p, exit.With(exit.Forbidden, fmt.Errorf("policy %s: %w", path, err))
	}
	return p, exit.With(exit.Forbidden, p.read(text))
}

// read decodes the file and checks it; the error has every slip.
func (p *Policy) read(text []byte) error {
	s := &source{path: p.File, lines: map[string]int{}}
	if len(bytes.TrimSpace(text)) == 0 {
		return fmt.Errorf(`policy %s: the file is empty, want an object, such as {"version": 1}`, p.File)
	}
	if s.decode(text, p); len(s.found) == 0 {
		p.check(s)
	}
	return s.err()
}

func (p *Policy) check(s *source) {
	if p.Version == 0 {
		s.bad("version", `got none, want "version": 1`)
	}
	p.checkUserns(s)
	p.checkMounts(s)
	p.checkRoots(s)
	p.Users.check(s)
	p.checkSecrets(s)
	p.checkUlimits(s)
	p.Seccomp.check(s)
	p.Capabilities.check(s)
	p.Label.check(s)
	p.checkRegistries(s)
	p.Notify.check(s.lines["notify"] > 0, s.bad)
	p.History.check(s.lines["history"] > 0, s.bad)
	p.Packages.check(s)
}

// WithHistory is the policy with the history store that a flag or variable, place, has named. A store that the operator
// has named stays.
func (p Policy) WithHistory(place, store, logs string) (Policy, error) {
	switch {
	case p.History.Store != "":
		return p, nil
	case store == "" && logs != "":
		return p, exit.Usagef("--history-logs %s: no store is named: want --history URL as well", logs)
	case store == "":
		return p, nil
	}
	p.History = historyRules{Store: store, Logs: logs}
	var found []error
	p.History.check(true, func(field, format string, args ...any) {
		if field == "history.logs" {
			place = "--history-logs"
		}
		found = append(found, exit.Usagef(place+": "+format, args...))
	})
	return p, errors.Join(found...)
}

func (p *Policy) checkMounts(s *source) {
	taken := map[string]int{}
	for i := range p.Mounts {
		m, field := &p.Mounts[i], fmt.Sprintf("mounts[%d]", i)
		belowRoot(s, field+".path", m.Path)
		if m.To == "" {
			m.To = m.Path
		} else {
			belowRoot(s, field+".to", m.To)
		}
		if first, twice := taken[m.To]; twice {
			s.bad(field, "got %s, which mounts[%d] mounts as well; want one of them", m.To, first)
			continue
		}
		taken[m.To] = i
	}
}

// checkRegistries refuses what no image's name begins with.
func (p *Policy) checkRegistries(s *source) {
	for i, host := range p.InsecureRegistries {
		if host == "" || strings.ContainsAny(host, "/ ") {
			s.bad(fmt.Sprintf("insecure_registries[%d]", i), "got %q, want HOST or HOST:PORT", host)
		}
	}
}

// belowRoot refuses a path that no folder of the host may be named by.
func belowRoot(s *source, field, path string) {
	if !plainPath(path) {
		s.bad(field, "got %q, want an absolute path below /, without . and .. for names", path)
	}
}

// plainPath tells a path that a folder of the host may be named by.
func plainPath(path string) bool {
	return filepath.IsAbs(path) && filepath.Clean(path) == path && path != "/"
}

// trusted refuses a file that somebody else could have written, or put in its place.
func trusted(path string) error { return ownfolder.Trusted(path, os.Geteuid()) }
