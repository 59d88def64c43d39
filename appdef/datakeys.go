package appdef

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// inputKeys say which files a process reads.
func inputKeys() []Key {
	return []Key{
		{
			Name: "muster.input.*",
			Meaning: "muster.input.NAME: paths or URLs with commas between them, globs allowed; the files are " +
				"shared out among the instances of the component, in the folder NAME",
			component: func(c *Component, name, text string) error {
				return setNamed(&c.Settings.Inputs.From, name, text, localName(name) && strings.TrimSpace(text) != "",
					"a local name after muster.input. and something to read")
			},
		},
		{
			Name: "muster.inputs.strategy", Default: StrategyDownload,
			Values: []string{StrategyDownload, StrategyPlaceholder, StrategyStream},
			Meaning: "download: files are copied into the instance's folder; placeholder: the process gets their " +
				"URLs in INPUT_FILE_LIST; stream: their lines go to its stdin",
			component: inputSetting(func(i *Inputs, text string) error {
				return setOneOf(&i.Strategy, text, StrategyDownload, StrategyPlaceholder, StrategyStream)
			}),
		},
		{
			Name: "muster.inputs.rename", Default: "false", Values: []string{"true", "false"},
			Meaning:   "give downloaded files unique names, so that files of the same name do not collide",
			component: inputBool(func(i *Inputs) *bool { return &i.Rename }),
		},
		{
			Name: "muster.inputs.whole", Default: "false", Values: []string{"true", "false"},
			Meaning:   "placeholder: every instance gets the list of all files",
			component: inputBool(func(i *Inputs) *bool { return &i.Whole }),
		},
		{
			Name: "muster.inputs.chief", Default: "0: as many as the others",
			Meaning: "how many files of each input the first reader gets: the first ones that are not empty. The " +
				"other readers share the rest",
			component: inputCount(func(i *Inputs) *int { return &i.Chief }, 0),
		},
		{
			Name: "muster.inputs.list.length", Default: "120240",
			Meaning: "placeholder: how many characters all variables together may have; a longer list of files " +
				"goes into inputFileList.txt",
			component: inputCount(func(i *Inputs) *int { return &i.ListLength }, 1),
		},
		{
			Name: "muster.inputs.parallel", Default: "10",
			Meaning:   "how many files are downloaded at the same time",
			component: inputCount(func(i *Inputs) *int { return &i.Parallel }, 1),
		},
		{
			Name: "muster.inputs.retries", Default: "7",
			Meaning: "how often the download of a file is retried when it makes no progress",
			component: inputSetting(func(i *Inputs, text string) error {
				n, err := atLeast(0, text)
				i.Retries = &n
				return err
			}),
		},
	}
}

// propertyForm is the name of a property of Hadoop's.
var propertyForm = regexp.MustCompile(`^[\w.-]+$`)

// streamKeys say how files become lines of stdin.
func streamKeys() []Key {
	return []Key{
		{
			Name: "muster.inputs.shuffle", Default: "false", Values: []string{"true", "false"},
			Meaning:   "stream: assign splits to instances in turn, not in blocks",
			component: inputBool(func(i *Inputs) *bool { return &i.Shuffle }),
		},
		{
			Name: "muster.inputs.epochs", Default: "1",
			Meaning:   "stream: how often each instance reads its lines",
			component: inputCount(func(i *Inputs) *int { return &i.Epochs }, 1),
		},
		{
			Name: "muster.inputs.format", Default: "lines of text",
			Meaning:   "stream: the Hadoop InputFormat that splits the files",
			component: inputSetting(func(i *Inputs, text string) error { return setText(&i.Format, text) }),
		},
		{
			Name: "muster.inputs.splits", Default: "1",
			Meaning: "stream: how many splits to make of all files together. No split is larger than 128 MB plus a " +
				"tenth, and each file is at least one split",
			component: inputCount(func(i *Inputs) *int { return &i.Splits }, 1),
		},
		{
			Name:    "muster.formats.conf.*",
			Meaning: "a property of Hadoop's Configuration, which an InputFormat or OutputFormat of your own reads",
			component: func(c *Component, name, text string) error {
				err := setNamed(&c.Settings.Inputs.Conf, name, text, propertyForm.MatchString(name),
					"a property's name after muster.formats.conf., of letters, digits, _, - and dots")
				c.Settings.Outputs.Conf = c.Settings.Inputs.Conf
				return err
			},
		},
		{
			Name: "muster.inputs.lines", Default: "1", Meaning: "stream: the lines of one split, for NLineInputFormat",
			component: inputCount(func(i *Inputs) *int { return &i.Lines }, 1),
		},
		{
			Name: "muster.inputs.separator", Default: "a tab",
			Meaning:   "stream: the character between key and value, for KeyValueTextInputFormat",
			component: inputSetting((*Inputs).setSeparator),
		},
		{
			Name: "muster.inputs.cache", Default: "false", Values: []string{"true", "false"},
			Meaning:   "stream: later epochs read a compressed copy in the instance's folder",
			component: inputBool(func(i *Inputs) *bool { return &i.Cache }),
		},
		{
			Name: "muster.inputs.cache.limit", Default: strconv.Itoa(StreamCacheLimit),
			Meaning:   "stream: the largest size of that copy, MB; a larger one is not kept",
			component: inputCount(func(i *Inputs) *int { return &i.CacheLimit }, 1),
		},
	}
}

// outputKeys say what a process uploads.
func outputKeys() []Key {
	return []Key{
		{
			Name: "muster.output.*",
			Meaning: "muster.output.NAME: the path or URL where each instance's folder NAME is uploaded after a " +
				"success",
			component: func(c *Component, name, text string) error {
				return setNamed(&c.Settings.Outputs.To, name, text, localName(name) && strings.TrimSpace(text) != "",
					"a local name after muster.output. and where it goes")
			},
		},
		{
			Name: "muster.outputs.strategy", Default: StrategyUpload, Values: []string{StrategyUpload, StrategyStream},
			Meaning: "upload: folders are uploaded at the end; stream: stdout is written to the output",
			component: outputSetting(func(o *Outputs, text string) error {
				return setOneOf(&o.Strategy, text, StrategyUpload, StrategyStream)
			}),
		},
		{
			Name: "muster.outputs.index", Default: "-1",
			Meaning:   "the only instance whose outputs are uploaded, under their own names; -1: all instances",
			component: outputSetting((*Outputs).setOnly),
		},
		{
			Name: "muster.outputs.flat", Default: "false", Values: []string{"true", "false"},
			Meaning:   "a single instance uploads its outputs without a folder of its own name",
			component: outputBool(func(o *Outputs) *bool { return &o.Flat }),
		},
		{
			Name: "muster.outputs.failed", Default: "false", Values: []string{"true", "false"},
			Meaning:   "also upload the outputs of a failed process",
			component: outputBool(func(o *Outputs) *bool { return &o.Failed }),
		},
		{
			Name: "muster.outputs.interval", Default: "0", Global: true,
			Meaning: "how often all instances save their outputs during the run, 1s or more; 0: only when muster " +
				"save asks for it",
			app: func(s *AppSettings, text string) error { return setDuration(&s.SaveEvery, text) },
		},
		{
			Name: "muster.outputs.incremental", Default: "false", Values: []string{"true", "false"},
			Meaning:   "an interim save contains only the files that changed since the previous one",
			component: outputBool(func(o *Outputs) *bool { return &o.Incremental }),
		},
		{
			Name: "muster.outputs.interim", Default: "interResult/interResult_",
			Meaning:   "the path of interim saves below the output; the time of the save is appended",
			component: outputSetting((*Outputs).setInterim),
		},
		{
			Name: "muster.outputs.parallel", Default: "10",
			Meaning: "how many files are uploaded at the same time",
			component: outputSetting(func(o *Outputs, text string) (err error) {
				o.Parallel, err = atLeast(1, text)
				return err
			}),
		},
		{
			Name: "muster.outputs.format", Default: "lines of text",
			Meaning:   "stream: the Hadoop OutputFormat to write",
			component: outputSetting(func(o *Outputs, text string) error { return setText(&o.Format, text) }),
		},
	}
}

// inputSetting stores one value of a component's inputs.
func inputSetting(set func(*Inputs, string) error) func(*Component, string, string) error {
	return func(c *Component, _, text string) error { return set(&c.Settings.Inputs, text) }
}

// inputBool stores true or false.
func inputBool(at func(*Inputs) *bool) func(*Component, string, string) error {
	return inputSetting(func(i *Inputs, text string) (err error) { *at(i), err = parseBool(text); return err })
}

// inputCount stores a whole number, at least the given one.
func inputCount(at func(*Inputs) *int, least int) func(*Component, string, string) error {
	return inputSetting(func(i *Inputs, text string) (err error) { *at(i), err = atLeast(least, text); return err })
}

// outputSetting stores one value of a component's outputs.
func outputSetting(set func(*Outputs, string) error) func(*Component, string, string) error {
	return func(c *Component, _, text string) error { return set(&c.Settings.Outputs, text) }
}

// outputBool stores true or false.
func outputBool(at func(*Outputs) *bool) func(*Component, string, string) error {
	return outputSetting(func(o *Outputs, text string) (err error) { *at(o), err = parseBool(text); return err })
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
