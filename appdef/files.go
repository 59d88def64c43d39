package appdef

import (
	"slices"
	"strings"
)

// OwnNames are muster's own names in an instance's folder: files of a definition must have others.
func OwnNames() []string { return []string{"app", "package", "roster.json"} }

// localName tells whether a name can be a file or folder of the instance's own.
func localName(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\\\x00") &&
		!slices.Contains(OwnNames(), name)
}

// fileKeys name files and archives that every instance gets.
func fileKeys() []Key {
	type setter = func(c *Component, name, text string) error
	brought := func(at func(*ComponentSettings) *map[string]string, want string) setter {
		return func(c *Component, name, text string) error {
			return setNamed(at(&c.Settings), name, text, localName(name) && strings.TrimSpace(text) != "", want)
		}
	}
	return []Key{
		{
			Name: "muster.file.*",
			Meaning: "muster.file.NAME: the path or URL of a file or folder; each instance gets a copy of it " +
				"called NAME",
			component: brought(func(s *ComponentSettings) *map[string]string {
				return &s.Files
			}, "a local name after muster.file. and what to bring"),
		},
		{
			Name: "muster.archive.*",
			Meaning: "muster.archive.NAME: the path or URL of an archive (zip, jar, tar, tar.gz, tgz, tar.zst); " +
				"each instance gets its content in the folder NAME",
			component: brought(func(s *ComponentSettings) *map[string]string {
				return &s.Archives
			}, "a local name after muster.archive. and what to unpack"),
		},
		{
			Name: "muster.files.check", Default: "true", Values: []string{"true", "false"},
			Meaning: "whether all muster.file.* and muster.archive.* must exist before the first one is downloaded",
			component: func(c *Component, _, text string) error {
				check, err := parseBool(text)
				c.Settings.FilesUnchecked = !check
				return err
			},
		},
	}
}
