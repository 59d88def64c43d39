package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
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
	// program is what File holds.
	program []byte
}

// UnmarshalJSON takes both forms.
func (s *seccompRules) UnmarshalJSON(text []byte) error {
	var word string
	if json.Unmarshal(text, &word) == nil {
		if word == "" {
			return fmt.Errorf(`seccomp: got "", want %q, the path of a filter or an object`, unconfined)
		}
		*s = seccompRules{Unconfined: word == unconfined}
		if !s.Unconfined {
			s.File = word
		}
		return nil
	}
	type plain seccompRules
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode((*plain)(s)); err != nil {
		return fmt.Errorf("seccomp: %w; known are allow, deny and file", err)
	}
	return nil
}

func (s *seccompRules) check() error {
	if s.File != "" && len(s.Allow)+len(s.Deny) > 0 {
		return errors.New("file replaces the default filter, which allow and deny change: name one or the other")
	}
	err := seccomp.Rules{Allow: s.Allow, Deny: s.Deny}.Check()
	if unknown, ok := errors.AsType[*seccomp.UnknownError](err); ok {
		hint := "want names of system calls, as `man 2 syscalls` lists them"
		if near, ok := appdef.Nearest(unknown.Name, unknown.Known); ok {
			hint = "did you mean " + near + "?"
		}
		return fmt.Errorf("%w: %s", err, hint)
	}
	if err != nil || s.File == "" {
		return err
	}
	return s.readFile()
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
