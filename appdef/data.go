package appdef

import (
	"slices"
	"strconv"
	"strings"
)

// dataKeys say what a process reads and leaves behind.
func dataKeys() []Key {
	in := func(set func(*Inputs, string) error) func(*Component, string, string) error {
		return func(c *Component, _, text string) error { return set(&c.Settings.Inputs, text) }
	}
	out := func(set func(*Outputs, string) error) func(*Component, string, string) error {
		return func(c *Component, _, text string) error { return set(&c.Settings.Outputs, text) }
	}
	yes := []string{"true", "false"}
	return []Key{
		{
			Name: "muster.input.*",
			Meaning: "muster.input.NAME: paths or URLs with commas between, globs allowed: their files are dealt out " +
				"among the component's instances, under NAME",
			component: func(c *Component, name, text string) error {
				return setNamed(&c.Settings.Inputs.From, name, text, localName(name) && strings.TrimSpace(text) != "",
					"a local name after muster.input. and something to read")
			},
		},
		{
			Name: "muster.inputs.strategy", Default: StrategyDownload,
			Values: []string{StrategyDownload, StrategyPlaceholder, StrategyStream},
			Meaning: "download: files are copied into the instance's folder; placeholder: the process is told of " +
				"them by INPUT_FILE_LIST; stream: their lines are its stdin",
			component: in(func(i *Inputs, text string) error {
				return setOneOf(&i.Strategy, text, StrategyDownload, StrategyPlaceholder, StrategyStream)
			}),
		},
		{
			Name: "muster.inputs.rename", Default: "false", Values: yes,
			Meaning:   "downloaded files get names of their own, so that equal ones do not meet",
			component: in(func(i *Inputs, text string) (err error) { i.Rename, err = parseBool(text); return err }),
		},
		{
			Name: "muster.inputs.whole", Default: "false", Values: yes,
			Meaning:   "placeholder: every instance is told of all files",
			component: in(func(i *Inputs, text string) (err error) { i.Whole, err = parseBool(text); return err }),
		},
		{
			Name: "muster.inputs.chief", Default: "0: its turn comes as everybody's",
			Meaning: "how many files of each input the first reader gets, the first ones, empty ones not counted; " +
				"the others share the rest in turn",
			component: in(func(i *Inputs, text string) (err error) { i.Chief, err = atLeast(0, text); return err }),
		},
		{
			Name: "muster.inputs.list.length", Default: "120240",
			Meaning: "placeholder: how many characters all variables together may have; a list that is too long for " +
				"it is in inputFileList.txt instead",
			component: in(func(i *Inputs, text string) (err error) {
				i.ListLength, err = atLeast(1, text)
				return err
			}),
		},
		{
			Name: "muster.inputs.parallel", Default: "10", Meaning: "how many files are brought at a time",
			component: in(func(i *Inputs, text string) (err error) { i.Parallel, err = atLeast(1, text); return err }),
		},
		{
			Name: "muster.inputs.retries", Default: "7",
			Meaning: "how often a file is tried again that does not come on",
			component: in(func(i *Inputs, text string) error {
				n, err := atLeast(0, text)
				i.Retries = &n
				return err
			}),
		},
		{
			Name: "muster.inputs.shuffle", Default: "false", Values: yes,
			Meaning:   "stream: splits are dealt out in turn, not in blocks",
			component: in(func(i *Inputs, text string) (err error) { i.Shuffle, err = parseBool(text); return err }),
		},
		{
			Name: "muster.inputs.epochs", Default: "1", Meaning: "stream: how often the lines come",
			component: in(func(i *Inputs, text string) (err error) { i.Epochs, err = atLeast(1, text); return err }),
		},
		{
			Name: "muster.inputs.format", Default: "lines of text",
			Meaning:   "stream: the Hadoop InputFormat that cuts the files",
			component: in(func(i *Inputs, text string) error { return setText(&i.Format, text) }),
		},
		{
			Name: "muster.inputs.splits", Default: "1",
			Meaning: "stream: how many splits are asked for, of all files together; none is larger than 128 MB and a " +
				"tenth, and each file is one at least",
			component: in(func(i *Inputs, text string) (err error) { i.Splits, err = atLeast(1, text); return err }),
		},
		{
			Name: "muster.inputs.lines", Default: "1", Meaning: "stream: the lines of one split, for NLineInputFormat",
			component: in(func(i *Inputs, text string) (err error) { i.Lines, err = atLeast(1, text); return err }),
		},
		{
			Name: "muster.inputs.separator", Default: "a tab",
			Meaning:   "stream: the character between key and value, for KeyValueTextInputFormat",
			component: in((*Inputs).setSeparator),
		},
		{
			Name: "muster.inputs.cache", Default: "false", Values: yes,
			Meaning:   "stream: epochs after the first read a compressed copy in the instance's folder",
			component: in(func(i *Inputs, text string) (err error) { i.Cache, err = parseBool(text); return err }),
		},
		{
			Name: "muster.inputs.cache.limit", Default: strconv.Itoa(StreamCacheLimit),
			Meaning: "stream: how large that copy may be, in MB; without it where it would be larger",
			component: in(func(i *Inputs, text string) (err error) {
				i.CacheLimit, err = atLeast(1, text)
				return err
			}),
		},
		{
			Name: "muster.output.*",
			Meaning: "muster.output.NAME: the path or URL where the folder NAME of each instance is left after a " +
				"success",
			component: func(c *Component, name, text string) error {
				return setNamed(&c.Settings.Outputs.To, name, text, localName(name) && strings.TrimSpace(text) != "",
					"a local name after muster.output. and where it goes")
			},
		},
		{
			Name: "muster.outputs.strategy", Default: StrategyUpload, Values: []string{StrategyUpload, StrategyStream},
			Meaning: "upload: folders are copied at the end; stream: stdout is what is left",
			component: out(func(o *Outputs, text string) error {
				return setOneOf(&o.Strategy, text, StrategyUpload, StrategyStream)
			}),
		},
		{
			Name: "muster.outputs.index", Default: "-1",
			Meaning:   "the one instance whose outputs are left, under their own names; -1: those of all",
			component: out((*Outputs).setOnly),
		},
		{
			Name: "muster.outputs.flat", Default: "false", Values: yes,
			Meaning:   "a single instance leaves its outputs without a folder of its own name",
			component: out(func(o *Outputs, text string) (err error) { o.Flat, err = parseBool(text); return err }),
		},
		{
			Name: "muster.outputs.failed", Default: "false", Values: yes,
			Meaning:   "a failed process leaves its outputs as well",
			component: out(func(o *Outputs, text string) (err error) { o.Failed, err = parseBool(text); return err }),
		},
		{
			Name: "muster.outputs.interval", Default: "0", Global: true,
			Meaning: "how often all instances save their outputs while they run, 1s or more; 0: when muster save " +
				"asks for it",
			app: func(s *AppSettings, text string) error { return setDuration(&s.SaveEvery, text) },
		},
		{
			Name: "muster.outputs.incremental", Default: "false", Values: yes,
			Meaning: "an interim save has only the files that have changed since the one before",
			component: out(func(o *Outputs, text string) (err error) {
				o.Incremental, err = parseBool(text)
				return err
			}),
		},
		{
			Name: "muster.outputs.interim", Default: "interResult/interResult_",
			Meaning:   "where interim saves lie below the place of an output; their time follows",
			component: out((*Outputs).setInterim),
		},
		{
			Name: "muster.outputs.parallel", Default: "10",
			Meaning: "how many files are copied to their place at a time",
			component: out(func(o *Outputs, text string) (err error) {
				o.Parallel, err = atLeast(1, text)
				return err
			}),
		},
		{
			Name: "muster.outputs.format", Default: "lines of text",
			Meaning:   "stream: the Hadoop OutputFormat that is written",
			component: out(func(o *Outputs, text string) error { return setText(&o.Format, text) }),
		},
	}
}

func (o *Outputs) setInterim(text string) error {
	o.Interim = strings.Trim(strings.TrimSpace(text), "/")
	first, _, _ := strings.Cut(o.Interim, "/")
	bad := func(part string) bool { return part == "" || part == "." || part == ".." }
	if slices.ContainsFunc(strings.Split(o.Interim, "/"), bad) || strings.HasPrefix(first, "_") {
		return wanted{want: "a path below the output, such as saves/save_"}
	}
	return nil
}

func (i *Inputs) setSeparator(text string) error {
	i.Separator = strings.ReplaceAll(text, `\t`, "\t")
	if len(i.Separator) != 1 {
		return wanted{want: `one character of ASCII; \t is a tab`}
	}
	return nil
}

func (o *Outputs) setOnly(text string) error {
	n, err := atLeast(EveryIndex, text)
	if o.Only = nil; n != EveryIndex {
		o.Only = &n
	}
	return err
}

func setOneOf(at *string, text string, values ...string) error {
	*at = text
	if !slices.Contains(values, text) {
		return wanted{want: strings.Join(values, ", "), hint: didYouMean(text, values)}
	}
	return nil
}
