package doctor

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/shim/policy"
	"github.com/muster-agent/muster/shim/sandbox/container"
)

// checkPolicy says what holds here by the operator's policy, and what it names that is not there.
func checkPolicy(o Options) Check {
	const name = "policy"
	p := o.Policy
	switch {
	case o.PolicyErr != nil:
		return bad(name, "no agent starts until it is mended", "%v", o.PolicyErr).needed()
	case p.Version == 0:
		return good(name, "none at %s: %s", p.File, says(p))
	}
	var stops, faults []string // faults that keep every container from starting, and others
	for i, m := range p.Mounts {
		if _, err := os.Stat(m.Path); err != nil {
			stops = append(stops, fmt.Sprintf("mounts[%d]: %v", i, err))
		}
	}
	if _, err := container.AppArmor(p.Label.AppArmor); err != nil {
		stops = append(stops, fmt.Sprintf("label: %v", err))
	}
	for i, r := range p.Roots {
		if _, err := os.Stat(r.Path); err != nil {
			faults = append(faults, fmt.Sprintf("roots[%d]: %v", i, err))
		}
	}
	unknown, err := p.Users.Unknown()
	if err != nil {
		unknown = []string{fmt.Sprintf("users: %v", err)}
	}
	faults = append(faults, unknown...)
	all := strings.Join(append(stops, faults...), "; ")
	switch {
	case len(stops) > 0:
		return bad(name, "make what is not there, or take it out of the policy: no container starts until then",
			"%s: %s", p.File, all).needed()
	case len(faults) > 0:
		return bad(name, "mend the policy if it is for this host", "%s: %s", p.File, all)
	}
	return good(name, "%s: %s", p.File, says(p))
}

// checkNotifier says whom agents of this host tell of the events of apps. It tells nobody.
func checkNotifier(o Options) Check {
	const name = "notifier"
	n := o.Policy.Notify
	switch {
	case o.PolicyErr != nil:
		return bad(name, "mend the policy", "not known: the policy cannot be read")
	case n.To() == "":
		return good(name, "none: notify in %s names one", o.Policy.File)
	case n.HeaderFile != "":
		if err := unix.Access(n.HeaderFile, unix.R_OK); err != nil {
			return bad(name, "make it, readable for agents", "%s: header_file: %v", n.To(), err)
		}
	}
	events := "every event"
	if len(n.Events) > 0 {
		events = strings.Join(n.Events, ", ")
	}
	return good(name, "%s is told of %s, within %s", n.To(), events, n.Limit)
}

// says is what a policy changes, by its fields, and the two defaults that most depends on.
func says(p policy.Policy) string {
	parts := []string{
		"userns " + cmp.Or(p.Userns, "private"), fmt.Sprintf("refuse_root %v", p.RefusesRoot()),
	}
	list := func(field string, entries []string) {
		if len(entries) > 0 {
			parts = append(parts, field+" "+strings.Join(entries, ", "))
		}
	}
	var mounts, roots []string
	for _, m := range p.Mounts {
		at := m.Path
		if m.To != m.Path {
			at += " at " + m.To
		}
		mounts = append(mounts, at+readOnly(m.ReadOnly))
	}
	for _, r := range p.Roots {
		roots = append(roots, r.Path+readOnly(r.ReadOnly))
	}
	list("mounts", mounts)
	list("roots", roots)
	list("users", p.Users.Names)
	list("groups", p.Users.Groups)
	list("secret_env", p.SecretEnv)
	list("secret_keyring", p.SecretKeyring)
	list("secret_files", p.SecretFiles)
	list("ulimits", p.Ulimits)
	parts = append(parts, "seccomp "+p.Seccomp.String())
	list("capabilities", p.Capabilities.Add)
	if p.Label.AppArmor != "" {
		list("apparmor", []string{p.Label.AppArmor})
	}
	if p.SSH != nil {
		parts = append(parts, fmt.Sprintf("ssh %v", *p.SSH))
	}
	list("insecure_registries", p.InsecureRegistries)
	if h := p.History; h.Store != "" {
		parts = append(parts, fmt.Sprintf("history in %s, logs %s, for %s, up to %s", h.Store, h.Logs, h.Keep.Age,
			h.Keep.Size))
	}
	if p.Packages.RequireSignature {
		parts = append(parts, "packages signed by "+appdef.Counted(len(p.Packages.Keys), "key"))
	}
	return strings.Join(parts, "; ")
}

func readOnly(is bool) string {
	if is {
		return " (read-only)"
	}
	return ""
}
