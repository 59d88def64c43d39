package secret

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/keyring"
	"github.com/muster-agent/muster/shim/policy"
)

// Most is more than any password or key has, in bytes.
const Most = 1 << 20

// Source is where the values of one app come from.
type Source struct {
	// Policy is what the host's operator lets definitions name.
	Policy policy.Policy
	// File reads a small file of this host with the rights of the app's process.
	File func(path string) (string, error)
	// Job are the secrets of the job file itself.
	Job map[string]string
}

// Read reads the values that the plan names by reference.
func (s Source) Read(refs map[string]string) (map[string]string, error) {
	values := map[string]string{}
	for name, ref := range refs {
		value, err := s.read(ref)
		if err != nil {
			return nil, fmt.Errorf("secret %s: %w", name, err)
		}
		values[name] = value
	}
	return values, nil
}

func (s Source) read(ref string) (string, error) {
	kind, where, _ := strings.Cut(ref, ":")
	switch kind {
	case "env":
		return s.variable(where)
	case "job":
		value, ok := s.Job[where]
		if !ok {
			return "", fmt.Errorf("the job file has no secret %s", where)
		}
		return value, nil
	case "file":
		path := strings.TrimPrefix(where, "file://")
		text, err := s.File(path)
		if errors.Is(err, fs.ErrPermission) && fault.ClassOf(err) == "" { // for the agent itself
			err = fault.NotPermitted(fmt.Errorf("%w: %s, and the agent reads the file as uid %d: let this user read "+
				"it, or name a variable of the agent, env:MUSTER_SECRET_…", err, whose(path), os.Geteuid()))
		}
		return strings.TrimRight(text, "\n"), err
	case "keyring":
		// An ordinary user's keys are the process's as well; root's are not.
		if os.Geteuid() == 0 && !s.Policy.SecretKey(where) {
			return "", fault.NotPermitted(fmt.Errorf("key %s is root's: name a file that the job may read, or let the "+
				"operator %s", where, s.Policy.Admit(fmt.Sprintf(`"secret_keyring": [%q]`, where))))
		}
		return keyring.Read(where)
	}
	return "", fmt.Errorf("got %s:…, want file:PATH, env:NAME or keyring:NAME", kind)
}

// whose is a file that the agent may not read, or the folder on the way to it that it may not enter, with the owner.
func whose(path string) string {
	for at := filepath.Clean(path); ; at = filepath.Dir(at) {
		var info fs.FileInfo
		above, err := files.HostFolder(filepath.Dir(at))
		if err == nil {
			info, err = fs.Stat(above, filepath.Base(at))
		}
		if err == nil {
			is, _ := info.Sys().(*syscall.Stat_t) // as Linux has it
			return fmt.Sprintf("%s belongs to uid %d and gid %d with mode %04o", at, is.Uid, is.Gid, is.Mode&0o7777)
		}
		if at == filepath.Dir(at) {
			return path + " is closed"
		}
	}
}

// variable is a variable of the agent that definitions may name.
func (s Source) variable(name string) (string, error) {
	if err := s.Policy.SecretVariable(name); err != nil {
		return "", fault.NotPermitted(err)
	}
	v, ok := os.LookupEnv(name)
	if !ok {
		return "", fmt.Errorf("variable %s is not set for the agent", name)
	}
	return v, nil
}
