package secret

import (
	"fmt"
	"os"
	"strings"

	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/keyring"
)

// ownVariable tells what a definition may not hand to its process: the agent's own credentials and settings.
func ownVariable(name string) bool {
	return strings.HasPrefix(name, "CONSUL_") || strings.HasPrefix(name, "MUSTER_")
}

// Most is more than any password or key has, in bytes.
const Most = 1 << 20

// Read reads the values that the plan names by reference.
func Read(refs map[string]string) (map[string]string, error) {
	values := map[string]string{}
	for name, ref := range refs {
		kind, where, _ := strings.Cut(ref, ":")
		switch kind {
		case "env":
			if ownVariable(where) {
				return nil, fmt.Errorf("secret %s: variable %s belongs to the agent; give the process one of its own",
					name, where)
			}
			v, ok := os.LookupEnv(where)
			if !ok {
				return nil, fmt.Errorf("secret %s: variable %s is not set for the agent", name, where)
			}
			values[name] = v
		case "file":
			text, err := files.ReadHost(strings.TrimPrefix(where, "file://"), Most)
			if err != nil {
				return nil, fmt.Errorf("secret %s: %w", name, err)
			}
			values[name] = strings.TrimRight(text, "\n")
		case "keyring":
			text, err := keyring.Read(where)
			if err != nil {
				return nil, fmt.Errorf("secret %s: %w", name, err)
			}
			values[name] = text
		default:
			return nil, fmt.Errorf("secret %s: got %s:…, want file:PATH, env:NAME or keyring:NAME", name, kind)
		}
	}
	return values, nil
}
