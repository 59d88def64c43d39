package policy

import "strings"

// labelRules is what the policy says of the labels by which the kernel's security modules hold containers.
type labelRules struct {
	// AppArmor is the profile of containers; "": one that other container engines have loaded, or none.
	AppArmor string `json:"apparmor"`
}

func (l labelRules) check(s *source) {
	if strings.ContainsAny(l.AppArmor, " \t\n\x00") {
		s.bad("label.apparmor", "got %q, want the name of a profile, as aa-status shows it", l.AppArmor)
	}
}
