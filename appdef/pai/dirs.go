package pai

import (
	"regexp"
	"strings"
)

// dirs reads the three folders and the file of credentials. The output folder has a default; the others are empty
// without one.
func (l *loading) dirs(c cursor) {
	for name, key := range map[string]string{"dataDir": dataKey, "outputDir": outputKey, "codeDir": codeKey} {
		if dir := c.text(name); dir != "" {
			l.draft.Set("", key, l.substituted(dir), c.at(name))
		}
	}
	if output, ok := c.get("outputDir"); !ok || output.Text == "" {
		l.draft.Set("", outputKey, defaultOutput(l.draft.App.Name, l.options.OutputUser), c.place())
	}
	if file := c.text("authFile"); file != "" {
		l.draft.Resource("", authKey, "file:"+strings.TrimPrefix(l.substituted(file), "file://"), c.at("authFile"))
	}
}

func defaultOutput(job string, user bool) string {
	if user {
		return "${NN_URI}/Output/${USER}/" + job
	}
	return "${NN_URI}/Output/" + job
}

// dirName finds the names that PAI replaces in its path fields. 0.5 replaces only the first name, and once; nothing
// else can be meant. Braces are muster's form.
var dirName = regexp.MustCompile(
	`\$(?:(?:PAI|QIZHI)_(DEFAULT_FS_URI|JOB_NAME|USER_NAME|USERNAME)\b|` +
		`\{(?:PAI|QIZHI)_(DEFAULT_FS_URI|JOB_NAME|USER_NAME|USERNAME)\})`,
)

func (l *loading) substituted(path string) string {
	return dirName.ReplaceAllStringFunc(path, func(found string) string {
		switch name := strings.TrimSuffix(found, "}"); {
		case strings.HasSuffix(name, "_FS_URI"):
			return "${NN_URI}"
		case strings.HasSuffix(name, "_JOB_NAME"):
			return l.draft.App.Name
		}
		return "${USER}"
	})
}

// placed finds what substituted has made, and whether a word follows directly.
var placed = regexp.MustCompile(`\$\{(NN_URI|USER|USER_NAME)\}(\w?)`)

// written is a path in the form of a job file: the reverse of substituted.
func written(path string) string {
	return placed.ReplaceAllStringFunc(path, func(found string) string {
		m := placed.FindStringSubmatch(found)
		name := "PAI_USER_NAME"
		if m[1] == "NN_URI" {
			name = "PAI_DEFAULT_FS_URI"
		}
		if m[2] != "" {
			return "${" + name + "}" + m[2]
		}
		return "$" + name
	})
}
