package mask

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"unsafe"
)

// secretFlag tells which flags have NAME=VALUE with a value that nobody else may read, given this NAME.
func secretFlag(flag, name string) bool {
	switch flag {
	case "--env":
		return true
	case "--set", "--option", "--compopt":
		return named(name) || strings.Contains(name, "muster.env.")
	}
	return false
}

// Arguments returns a copy of this process's arguments, and overwrites secret values in the originals: any
// user may read those in /proc/PID/cmdline. Call it first of all; os.Args is the copy then.
func Arguments() []string {
	originals := os.Args
	os.Args = make([]string, len(originals))
	for i, arg := range originals {
		os.Args[i] = strings.Clone(arg)
	}
	for i, span := range secretSpans(os.Args) {
		// The runtime's strings are the kernel's copy of the arguments, on the stack of the process, which is writable.
		text := unsafe.Slice(unsafe.StringData(originals[i]), len(originals[i]))
		for at := span; at < len(text); at++ {
			text[at] = '*'
		}
	}
	return os.Args
}

// secretSpans says for arguments, by their number, at which byte a secret value begins.
func secretSpans(args []string) map[int]int {
	spans := map[int]int{}
	for i := 1; i < len(args); i++ {
		if args[i] == "--" {
			break
		}
		flag, setting, joined := strings.Cut(args[i], "=")
		at, offset := i, len(flag)+1
		if !joined {
			if i+1 == len(args) {
				break
			}
			at, offset, setting = i+1, 0, args[i+1]
		}
		name, value, set := strings.Cut(setting, "=")
		if set && value != "" && secretFlag(flag, name) {
			spans[at] = offset + len(name) + 1
		}
	}
	return spans
}

// handedOver begins the variables in which Hand puts arguments; the number of each follows.
const handedOver = "MUSTER_ARGUMENT_"

// Hand divides the arguments for a muster that this process starts: shown are for its command line, and the variables
// have those with values, which its Take adds. Other users cannot read a process's environment. What stands behind --
// is the user's program, whose own flags of these names stay with it.
func Hand(args []string) (shown, variables []string) {
	for i := 0; i < len(args); i++ {
		if args[i] == "--" {
			return append(shown, args[i:]...), variables
		}
		flag, _, joined := strings.Cut(args[i], "=")
		whole := args[i]
		if !slices.Contains(valued, flag) {
			shown = append(shown, whole)
			continue
		}
		if !joined && i+1 < len(args) {
			i++
			whole += "=" + args[i]
		}
		variables = append(variables, handedOver+strconv.Itoa(len(variables))+"="+whole)
	}
	return shown, variables
}

// valued are the flags that have values in variables.
var valued = []string{"--env", "--set"}

// Take adds the arguments that Hand put into variables to shown, before a -- behind which they would be the user's
// program's, and takes them out of this process's environment. Other flags are refused: who may choose a variable of an
// agent may not choose its policy.
func Take(shown []string) ([]string, error) {
	var handed []string
	for {
		name := handedOver + strconv.Itoa(len(handed))
		arg, given := os.LookupEnv(name)
		if !given {
			at := slices.Index(shown, "--")
			if at < 0 {
				at = len(shown)
			}
			return slices.Insert(slices.Clone(shown), at, handed...), nil
		}
		if err := os.Unsetenv(name); err != nil {
			return nil, err
		}
		if flag, _, _ := strings.Cut(arg, "="); !slices.Contains(valued, flag) {
			return nil, fmt.Errorf("variable %s: got %s, want --env or --set: unset it, only muster itself sets it",
				name, flag)
		}
		handed = append(handed, arg)
	}
}
