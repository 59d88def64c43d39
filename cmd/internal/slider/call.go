package slider

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/status"
)

// answerNo is the exit code of a question whose answer is no: Slider's EXIT_FALSE, -1, as a shell sees it.
const answerNo = 255

// call is a command line of Slider's, and where it reads and writes.
type call struct {
	console.Streams
	verb    string
	args    []string              // words that are no option
	given   map[string][][]string // by the option's first name: its words, each time it was given
	ignored []Option              // given, and without effect
	help    bool
}

// parse reads the words that follow a verb. An option of muster's that is not given is taken from its variable, as a
// flag is.
func parse(s console.Streams, verb string, options []Option, words []string) (call, error) {
	c := call{Streams: s, verb: verb, given: map[string][][]string{}}
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		if !strings.HasPrefix(word, "-") || word == "-" {
			c.args = append(c.args, word)
			continue
		}
		if word == "--help" || word == "-h" {
			c.help = true
			continue
		}
		o, inside, err := findOption(verb, options, word)
		if err != nil {
			return c, err
		}
		var values []string
		if values, words, err = o.take(verb, inside, words, options); err != nil {
			return c, err
		}
		if _, again := c.given[o.Name()]; !again && o.ignored != "" {
			c.ignored = append(c.ignored, o)
		}
		c.given[o.Name()] = append(c.given[o.Name()], values)
	}
	return c, c.readVariables(options)
}

// readVariables fills options that were not given from MUSTER_AGENT_<OPTION>.
func (c *call) readVariables(options []Option) error {
	for _, o := range options {
		name := "MUSTER_AGENT_" + strings.ToUpper(strings.ReplaceAll(strings.TrimLeft(o.Name(), "-"), "-", "_"))
		value, ok := os.LookupEnv(name)
		if !ok || o.ignored != "" || c.has(o.Name()) {
			continue
		}
		switch o.words() {
		case 1:
			c.given[o.Name()] = [][]string{{value}}
		case 0:
			on, err := strconv.ParseBool(value)
			if err != nil {
				return exit.Usagef("%s: %w", name, err)
			}
			if on {
				c.given[o.Name()] = [][]string{nil}
			}
		}
	}
	return nil
}

func (c *call) has(name string) bool { return len(c.given[name]) > 0 }

// one is the only word of an option, the last time it was given.
func (c *call) one(name string) string {
	if all := c.given[name]; len(all) > 0 {
		return all[len(all)-1][0]
	}
	return ""
}

// noteIgnored prints, once, the given options that have no effect.
func (c *call) noteIgnored() {
	if len(c.ignored) == 0 {
		return
	}
	var all []string
	for _, o := range c.ignored {
		all = append(all, o.Name()+" ("+o.ignored+")")
	}
	fmt.Fprintf(c.Err, "note: ignored: %s\n", strings.Join(all, ", "))
}

// wait is --wait, nil when it was not given.
func (c *call) wait() (*time.Duration, error) {
	if !c.has("--wait") {
		return nil, nil
	}
	n, err := strconv.Atoi(c.one("--wait"))
	if err != nil || n < 0 {
		return nil, exit.Usagef("slider %s: --wait %s: want seconds, 0 or more", c.verb, c.one("--wait"))
	}
	return new(time.Duration(n) * time.Second), nil
}

// name is the one argument: the app.
func (c *call) name() (string, error) {
	if len(c.args) != 1 {
		got := cmp.Or(strings.Join(c.args, " "), "nothing")
		return "", exit.Usagef("slider %s: got %s, want the name of one app", c.verb, got)
	}
	return c.args[0], checkName(c.args[0])
}

func checkName(name string) error { return exit.With(exit.Usage, appdef.CheckName("app", name)) }

// state is --state in YARN's spelling.
func (c *call) state() (string, error) {
	state := strings.ToUpper(c.one("--state"))
	if state != "" && !slices.Contains(states(), state) {
		return "", exit.Usagef("slider %s: --state %s: want one of %s", c.verb, state, strings.Join(states(), ", "))
	}
	return state, nil
}

// stateDir is the folder of the run's sockets: of --state-dir, else the recorded one, else the host's.
func (c *call) stateDir(recorded string) status.Dir {
	f := flags.State{Dir: cmp.Or(c.one("--state-dir"), recorded)}
	return f.Resolve()
}

// print prints JSON to --out, else to stdout.
func (c *call) print(value any) error {
	var text bytes.Buffer
	if err := console.PrintJSON(&text, value); err != nil {
		return err
	}
	return c.write(text.Bytes())
}

// writeAs is write that puts a file of this name into --out where that is a folder.
func (c *call) writeAs(name string, text []byte) error {
	if info, err := os.Stat(c.one("--out")); c.has("--out") && err == nil && info.IsDir() {
		return exit.With(exit.Forbidden, os.WriteFile(filepath.Join(c.one("--out"), name), text, 0o644))
	}
	return c.write(text)
}

// write writes to --out, else to stdout.
func (c *call) write(text []byte) error {
	if c.has("--out") {
		return exit.With(exit.Forbidden, os.WriteFile(c.one("--out"), text, 0o644))
	}
	_, err := c.Out.Write(text)
	return err
}
