package policy

import (
	"fmt"
	"slices"
	"strings"
)

// ownSecrets begin the agent's variables that are there to be named by definitions.
const ownSecrets = "MUSTER_SECRET_"

// SecretVariable refuses a variable of the agent that a definition may not name as a secret. Nothing but the operator's
// word, or the variable's own name, says that a job may have it: others are tokens of the launcher and the registry.
func (p Policy) SecretVariable(name string) error {
	if strings.HasPrefix(name, ownSecrets) || matches(p.SecretEnv, name) {
		return nil
	}
	operator := ""
	if !slices.ContainsFunc(agentTokens, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
		operator = ", or let the operator " + p.Admit(fmt.Sprintf(`"secret_env": [%q]`, name))
	}
	return fmt.Errorf("variable %s belongs to the agent: give it MUSTER_SECRET_%[1]s and name that%[2]s", name,
		operator)
}

// SecretKey tells whether a definition may name a key of the agent's keyrings.
func (p Policy) SecretKey(name string) bool { return matches(p.SecretKeyring, name) }

func matches(list []string, name string) bool {
	return slices.ContainsFunc(list, func(entry string) bool {
		if prefix, ok := strings.CutSuffix(entry, "*"); ok {
			return strings.HasPrefix(name, prefix)
		}
		return name == entry
	})
}

// agentTokens begin the variables by which an agent speaks to its registry and its launcher. No list lets a definition
// have them.
var agentTokens = []string{"CONSUL_", "VAULT_", "NOMAD_", "MUSTER_AGENT_"}

func (p Policy) checkSecrets(s *source) {
	for i, entry := range p.SecretEnv {
		name := strings.TrimSuffix(entry, "*")
		own := slices.ContainsFunc(agentTokens, func(prefix string) bool {
			return strings.HasPrefix(name, prefix) || name != entry && strings.HasPrefix(prefix, name)
		})
		if name == "" || strings.ContainsAny(name, "*= ") || own {
			s.bad(fmt.Sprintf("secret_env[%d]", i), "got %q, want NAME or PREFIX_*, and none of %s*", entry,
				strings.Join(agentTokens, "*, "))
		}
	}
	for i, entry := range p.SecretKeyring {
		if name := strings.TrimSuffix(entry, "*"); name == "" || strings.Contains(name, "*") {
			s.bad(fmt.Sprintf("secret_keyring[%d]", i), "got %q, want NAME or PREFIX*", entry)
		}
	}
	for i, entry := range p.SecretFiles {
		if !plainPath(strings.TrimSuffix(entry, "/*")) || strings.Contains(strings.TrimSuffix(entry, "/*"), "*") {
			s.bad(fmt.Sprintf("secret_files[%d]", i), "got %q, want an absolute path, or DIR/* for all below it", entry)
		}
	}
}
