package policy

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/shim/sandbox/seccomp"
)

// unconfined is the word for no filter at all.
const unconfined = "unconfined"

// seccompRules is what the policy says of the filter of system calls: nothing, changes of the default by names, or a
// filter in its place. In JSON it is an object, or a string: the path of a file, or `unconfined`.
type seccompRules struct {
	Allow []string `json:"allow"`
	Deny  []string `json:"deny"`
	// File is a filter as the kernel takes it: an array of struct sock_filter (seccomp(2)).
	File string `json:"file"`

	// Unconfined says that there is no filter.
	Unconfined bool `json:"-"`
	// isWord says that the policy has the string.
	isWord bool
	// program is what File holds.
	program []byte
}

// word takes the form that is a string.
func (s *seccompRules) word(text string) {
	*s = seccompRules{Unconfined: text == unconfined}
	if !s.Unconfined {
		s.File = text
	}
	s.isWord = true
}

func (s *seccompRules) check(from *source) {
	field := "seccomp"
	if !s.isWord {
		field += ".file"
	}
	switch {
	case s.isWord && !s.Unconfined && !filepath.IsAbs(s.File):
		from.bad(field, "got %q, want an object, %q or the absolute path of a filter%s", s.File, unconfined,
			also(appdef.DidYouMean(s.File, []string{unconfined})))
		return
	case s.File != "" && len(s.Allow)+len(s.Deny) > 0:
		from.bad(field, "a file replaces the default filter, which allow and deny change: name one or the other")
		return
	case s.File != "" && !filepath.IsAbs(s.File):
		from.bad(field, "got %q, want the absolute path of a filter", s.File)
		return
	}
	err := seccomp.Rules{Allow: s.Allow, Deny: s.Deny}.Check()
	unknown, isUnknown := errors.AsType[*seccomp.UnknownError](err)
	switch {
	case isUnknown:
		from.bad("seccomp."+unknown.Key, "no system call is called %q, want one that `man 2 syscalls` lists%s",
			unknown.Name, also(appdef.DidYouMean(unknown.Name, unknown.Known)))
	case err != nil:
		from.bad("seccomp", "%w", err)
	case s.File != "":
		if err := s.readFile(); err != nil {
			from.bad(field, "%w", err)
		}
	}
}

func (s *seccompRules) readFile() (err error) {
	if err := trusted(s.File); err != nil {
		return err
	}
	if s.program, err = os.ReadFile(s.File); err != nil {
		return err
	}
	const instruction, most = 8, 4096 // struct sock_filter, BPF_MAXINSNS
	if n := len(s.program); n == 0 || n%instruction != 0 || n/instruction > most {
		return fmt.Errorf("%s: got %d bytes, want 1 to %d instructions of %d bytes, as seccomp_export_bpf(3) "+
			"writes them", s.File, n, most, instruction)
	}
	return nil
}

// Filter is what every process gets; nil: the default filter, or none where Unconfined is set.
func (s seccompRules) Filter() ([]byte, error) {
	if s.File != "" || len(s.Allow)+len(s.Deny) == 0 {
		return s.program, nil
	}
	return seccomp.Rules{Allow: s.Allow, Deny: s.Deny}.Compile()
}

// String says which filter holds.
func (s seccompRules) String() string {
	switch {
	case s.Unconfined:
		return "none"
	case s.File != "":
		return s.File
	}
	text := "default"
	if len(s.Allow) > 0 {
		text += " with " + strings.Join(s.Allow, ", ")
	}
	if len(s.Deny) > 0 {
		text += " without " + strings.Join(s.Deny, ", ")
	}
	return text
}
