package secret

import (
	"fmt"
	"os"
	"strings"

	"github.com/muster-agent/muster/shim/fault"
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
	case "file":
		text, err := s.File(strings.TrimPrefix(where, "file://"))
		return strings.TrimRight(text, "\n"), err
	case "keyring":
		// An ordinary user's keys are the process's as well; root's are not.
		if os.Geteuid() == 0 && !s.Policy.SecretKey(where) {
			return "", fault.NotPermitted(fmt.Errorf("key %s is root's: name a file that the job may read, or let the "+
				`operator add "secret_keyring": [%[1]q] in %[2]s`, where, s.Policy.File))
		}
		return keyring.Read(where)
	}
	return "", fmt.Errorf("got %s:…, want file:PATH, env:NAME or keyring:NAME", kind)
}

// variable is a variable of the agent that definitions may name.
func (s Source) variable(name string) (string, error) {
	if !s.Policy.SecretVariable(name) {
		return "", fault.NotPermitted(fmt.Errorf("variable %s belongs to the agent: give it MUSTER_SECRET_%[1]s and "+
			`name that, or let the operator add "secret_env": [%[1]q] in %[2]s`, name, s.Policy.File))
	}
	v, ok := os.LookupEnv(name)
	if !ok {
		return "", fmt.Errorf("variable %s is not set for the agent", name)
	}
	return v, nil
}
