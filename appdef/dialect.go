package appdef

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// dialects are the job formats that an App may come from.
func dialects() []string { return []string{"hbox", "pai", "slider"} }

// dialectKeys keep what a job file of another system says where its App is written as a package.
func dialectKeys() []Key {
	text := func(at func(*AppSettings) *string) func(*AppSettings, string) error {
		return func(s *AppSettings, text string) error { *at(s) = text; return nil }
	}
	return []Key{
		{
			Name: dialectKey, Default: "slider", Global: true, Values: dialects(),
			Meaning: "the system that the definition was written for: pai and hbox restart nothing unless the " +
				"definition says so",
			app: func(_ *AppSettings, text string) error {
				if !slices.Contains(dialects(), text) {
					return wanted{want: strings.Join(dialects(), ", "), hint: didYouMean(text, dialects())}
				}
				return nil
			},
		},
		{
			Name: "muster.pai.version", Global: true, Values: []string{PAI05, PAI014, PAI1},
			Meaning: "the generation of PAI whose variables the processes are told: 0.5 (QIZHI), 0.14 (SCM), 1",
			app:     (*AppSettings).setPAIVersion,
		},
		{
			Name: "muster.pai.data.dir", Global: true, Meaning: "PAI's dataDir: PAI_DATA_DIR",
			app: text(func(s *AppSettings) *string {
				return &s.PAI.DataDir
			}),
		},
		{
			Name: "muster.pai.output.dir", Global: true, Meaning: "PAI's outputDir: PAI_OUTPUT_DIR",
			app: text(func(s *AppSettings) *string {
				return &s.PAI.OutputDir
			}),
		},
		{
			Name: "muster.pai.code.dir", Global: true, Meaning: "PAI's codeDir: its content is brought to every task",
			app: text(func(s *AppSettings) *string {
				return &s.PAI.CodeDir
			}),
		},
		{
			Name: "muster.pai.virtual.cluster", Global: true, Meaning: "PAI's virtualCluster, for the launcher",
			app: text(func(s *AppSettings) *string {
				return &s.PAI.VirtualCluster
			}),
		},
		{
			Name: "muster.pai.debug", Global: true, Default: "false", Values: []string{"true", "false"},
			Meaning: "PAI's isDebug",
			app:     func(s *AppSettings, text string) (err error) { s.PAI.Debug, err = parseBool(text); return err },
		},
		{
			Name: "muster.hbox.type", Global: true,
			Meaning: "HBox's app type, in upper case: the processes are told the variables of its containers",
			app: func(s *AppSettings, text string) error {
				s.HBox.Type = strings.ToUpper(text)
				return notEmpty(text)
			},
		},
	}
}

const dialectKey = "muster.dialect"

func (s *AppSettings) setPAIVersion(text string) error {
	s.PAI.Version = text
	if versions := []string{PAI05, PAI014, PAI1}; !slices.Contains(versions, text) {
		return wanted{want: strings.Join(versions, ", ")}
	}
	return nil
}

func (s *AppSettings) setTensorFlowMode(text string) error {
	switch text {
	case "between-graph":
		s.TensorFlowMode = ""
	case inGraph:
		s.TensorFlowMode = inGraph
	default:
		return wanted{want: "between-graph or in-graph", hint: didYouMean(text, []string{"between-graph", inGraph})}
	}
	return nil
}

// setTotalFailed reads a number of instances, or a share of them in percent.
func (s *AppSettings) setTotalFailed(text string) error {
	if percent, ok := strings.CutSuffix(text, "%"); ok {
		f, err := strconv.ParseFloat(percent, 64)
		if err != nil || !(f > 0 && f <= 100) {
			return wanted{want: "a share above 0% and up to 100%"}
		}
		s.Total.FailedShare = f / 100
		return nil
	}
	n, err := atLeast(0, text)
	if err != nil {
		return wanted{want: "a whole number, 0 or more, or a share such as 50%"}
	}
	s.Total.MinFailed = n
	return nil
}

func parseRetry(text string) (int, error) {
	n, err := ParseInt(text)
	if err != nil || n < RetryAlways {
		return 0, wanted{want: "a whole number, -2 or more"}
	}
	return n, nil
}

// setSide reads NAME, NAME.index, NAME.port and NAME.restart, in whatever order they come.
func (c *Component) setSide(name, text string) error {
	base, field, _ := strings.Cut(name, ".")
	if !ValidName(base) {
		return wanted{got: quote(base), want: "a name of letters, digits and _ ~ - after muster.side., a letter or " +
			"digit first"}
	}
	side := Side{Name: base, Index: EveryIndex, Restart: true}
	at, there := slices.BinarySearchFunc(c.Settings.Sides, base, func(s Side, name string) int {
		return cmp.Compare(s.Name, name)
	})
	if there {
		side = c.Settings.Sides[at]
	}
	var err error
	switch field {
	case "":
		side.Command, err = text, notEmpty(text)
	case "index":
		side.Index, err = atLeast(EveryIndex, text)
	case "port":
		side.Port, err = parseBool(text)
	case "restart":
		side.Restart, err = parseBool(text)
	default:
		return wanted{got: quote(name), want: base + ", " + base + ".index, " + base + ".port or " + base +
			".restart after muster.side."}
	}
	if err != nil {
		return err
	}
	c.Settings.Sides = slices.Clone(c.Settings.Sides)
	if there {
		c.Settings.Sides[at] = side
	} else {
		c.Settings.Sides = slices.Insert(c.Settings.Sides, at, side)
	}
	return nil
}
