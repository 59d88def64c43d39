package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/appdef"
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

func (r userRules) check(s *source) {
	checkAccounts(s, "users.names", r.Names)
	checkAccounts(s, "users.groups", r.Groups)
}

// checkAccounts refuses what is no name, number or range.
func checkAccounts(s *source, field string, list []string) {
	for i, entry := range list {
		from, to, isNumber := numbers(entry)
		first, _, _ := strings.Cut(entry, "-")
		if _, err := strconv.Atoi(first); err == nil && !isNumber { // 1000-: no account begins with a number and a dash
			from, to, isNumber = 1, 0, true
		}
		if entry == "" || strings.ContainsAny(entry, ":/ ") || isNumber && from > to {
			s.bad(fmt.Sprintf("%s[%d]", field, i), "got %q, want a name, a number or a range like 1000-59999", entry)
		}
	}
}

// Unknown says which names no account of this host has: they admit nobody here. One policy may be for many hosts. Other
// directories than the files are not asked, here as where a process is given its user.
func (r userRules) Unknown() (found []string, err error) {
	for _, one := range []struct {
		field, kind, path string
		list              []string
	}{{"users.names", "user", "/etc/passwd", r.Names}, {"users.groups", "group", "/etc/group", r.Groups}} {
		known, err := namesIn(one.path)
		if err != nil {
			return nil, err
		}
		for _, entry := range one.list {
			if _, _, isNumber := numbers(entry); !isNumber && !slices.Contains(known, entry) {
				found = append(found, fmt.Sprintf("%s: %q is no %s of %s and admits nobody; give its number%s",
					one.field, entry, one.kind, one.path, also(appdef.DidYouMean(entry, known))))
			}
		}
	}
	return found, nil
}

// namesIn are the names of a file in the form of passwd(5) or group(5); none where there is no such file.
func namesIn(path string) ([]string, error) {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	names := []string{}
	for line := range strings.Lines(string(text)) {
		if name, _, ok := strings.Cut(line, ":"); ok {
			names = append(names, name)
		}
	}
	return names, nil
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
