package appdef

import (
	"slices"
	"strings"
)

// dialects are the job formats that an App may come from.
func dialects() []string { return []string{"hbox", "pai", "slider"} }

// dialectKeys keep the values of another system's job file when its App is written as a package.
func dialectKeys() []Key {
	text := func(at func(*AppSettings) *string) func(*AppSettings, string) error {
		return func(s *AppSettings, text string) error { *at(s) = text; return nil }
	}
	return []Key{
		{
			Name: dialectKey, Default: "slider", Global: true, Values: dialects(),
			Meaning: "the system that the definition was written for; with pai and hbox nothing restarts unless " +
				"the definition sets muster.restart",
			app: func(_ *AppSettings, text string) error {
				if !slices.Contains(dialects(), text) {
					return wanted{want: strings.Join(dialects(), ", "), hint: didYouMean(text, dialects())}
				}
				return nil
			},
		},
		{
			Name: "muster.pai.version", Global: true, Values: []string{PAI05, PAI014, PAI1},
			Meaning: "the version of PAI whose variables the processes get: 0.5 (QIZHI), 0.14 (SCM), 1",
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
			Name: "muster.pai.code.dir", Global: true,
			Meaning: "PAI's codeDir: each task gets a copy of its content",
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
			Meaning: "PAI's isDebug as the job file has it, for muster convert; muster.hold is what acts",
			app:     func(s *AppSettings, text string) (err error) { s.PAI.Debug, err = parseBool(text); return err },
		},
		{
			Name: "muster.hbox.type", Global: true,
			Meaning: "HBox's app type, in upper case; the processes get the variables of HBox's containers",
			app: func(s *AppSettings, text string) error {
				s.HBox.Type = strings.ToUpper(text)
				return notEmpty(text)
			},
		},
		{
			Name: "muster.hbox.jars", Global: true, Default: "first", Values: []string{"first", "last"},
			Meaning: "where CLASSPATH has the jars of the working directory: before the host's and Hadoop's, or behind",
			app: func(s *AppSettings, text string) error {
				s.HBox.JarsLast = text == "last"
				if text != "first" && text != "last" {
					return wanted{want: "first, last"}
				}
				return nil
			},
		},
		{
			Name: "muster.hbox.login", Global: true, Default: "true for VPC, DIGITS", Values: []string{"true", "false"},
			Meaning: "the instances have an ssh server that takes the password that hbox-submit prints",
			app:     func(s *AppSettings, text string) (err error) { s.HBox.Login, err = parseBool(text); return err },
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
