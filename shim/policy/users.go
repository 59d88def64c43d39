package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// userRules are the users and groups of the host that definitions may name, where the agent is root: by name, by
// number, or as a range of numbers, 1000-59999. The list admits a user with the groups that the host's accounts give
// that user; other groups are listed apart.
type userRules struct {
	Names  []string `json:"names"`
	Groups []string `json:"groups"`
}

// User tells whether definitions may name the user of an id, to whom the host gives these names.
func (r userRules) User(id int, names []string) bool { return listed(r.Names, id, names) }

// Group is User of a group.
func (r userRules) Group(id int, names []string) bool { return listed(r.Groups, id, names) }

func (r userRules) check() error {
	for key, list := range map[string][]string{"names": r.Names, "groups": r.Groups} {
		for i, entry := range list {
			from, to, ranges := numbers(entry)
			if entry == "" || strings.ContainsAny(entry, ":/ ") || ranges && from > to {
				return fmt.Errorf("%s[%d]: got %q, want a name, a number or a range like 1000-59999", key, i, entry)
			}
		}
	}
	return nil
}

func listed(list []string, id int, names []string) bool {
	return slices.ContainsFunc(list, func(entry string) bool {
		if from, to, ok := numbers(entry); ok {
			return from <= id && id <= to
		}
		return slices.Contains(names, entry)
	})
}

// numbers are the bounds of a number or a range; false: the entry is a name.
func numbers(entry string) (from, to int, ok bool) {
	first, last, ranges := strings.Cut(entry, "-")
	from, err := strconv.Atoi(first)
	if err != nil {
		return 0, 0, false
	}
	if !ranges {
		return from, from, true
	}
	to, err = strconv.Atoi(last)
	return from, to, err == nil
}
