package pai

import (
	"regexp"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// reference finds what PAI 1 fills into commands: `<% $parameters.name %>`, also `.a.b` and `[0]`.
var reference = regexp.MustCompile(`<%\s*(\$[^%]*?)\s*%>`)

// step is one part of a reference's path.
var step = regexp.MustCompile(`\.?([^.\[\]\s]+)|\[(\d+)\]`)

// scope is what references of one task role mean.
type scope struct {
	*secondJob
	parts map[string]cursor // the role's own prerequisites by kind
	plain bool              // secrets are filled in as they are; else the text becomes parts of a quoted shell text
}

// fill replaces the references in a text. secrets tells whether it has some: then the result is a text between the
// quotes of a shell, in which variables stand for the secrets, so that no value of a secret is in a definition.
func (s scope) fill(text string, at appdef.Place) (filled string, secrets bool) {
	found := reference.FindAllStringSubmatchIndex(text, -1)
	for _, m := range found {
		secrets = secrets || !s.plain && secretPath(text[m[2]:m[3]])
	}
	literal := func(text string) string {
		if secrets {
			return strings.ReplaceAll(text, "'", `'\''`)
		}
		return text
	}
	var b strings.Builder
	end := 0
	for _, m := range found {
		b.WriteString(literal(text[end:m[0]]))
		end = m[1]
		name := text[m[2]:m[3]]
		value, ok := s.value(name, at)
		switch {
		case !ok:
			b.WriteString(literal(text[m[0]:m[1]]))
		case secretPath(name) && !s.plain:
			b.WriteString(`'"$` + s.variable(name, value) + `"'`)
		default:
			b.WriteString(literal(value))
		}
	}
	b.WriteString(literal(text[end:]))
	return b.String(), secrets
}

func secretPath(name string) bool { return name == "$secrets" || strings.HasPrefix(name, "$secrets.") }

// value is what a reference stands for. What stands for nothing is reported, but not what is no reference of PAI's.
func (s scope) value(name string, at appdef.Place) (string, bool) {
	root, path, _ := strings.Cut(name, ".")
	node, known := s.root(root)
	if !known {
		s.found = append(s.found, at.Warning(appdef.Quote("<% "+name+" %>"),
			"$parameters, $script, $output, $data or $secrets", "it is left as it is"))
		return "", false
	}
	for _, m := range step.FindAllStringSubmatch(path, -1) {
		if node == nil {
			break
		}
		node = child(node, m[1]+m[2])
	}
	var text string
	if node != nil && path != "" {
		text, known = joined(node)
	}
	if node == nil || path == "" || !known {
		s.found = append(s.found, at.Problem(appdef.Quote("<% "+name+" %>")+", which stands for no text",
			"a value of "+strings.TrimPrefix(root, "$"), ""))
		return "", false
	}
	return text, true
}

// root is what a reference begins with.
func (s scope) root(name string) (*appdef.JSONNode, bool) {
	switch name {
	case "$parameters":
		return s.parameters.JSONNode, true
	case "$secrets":
		return s.secrets.JSONNode, true
	case "$script", "$output", "$data":
		return s.parts[strings.TrimPrefix(name, "$")].JSONNode, true
	}
	return nil, false
}

func child(n *appdef.JSONNode, name string) *appdef.JSONNode {
	if n.Kind == appdef.JSONArray {
		if i, err := appdef.ParseInt(name); err == nil && i >= 0 && i < len(n.Items) {
			return n.Items[i]
		}
		return nil
	}
	return n.Member(name)
}

// joined is a value as a text: a list with commas, as JavaScript prints one. An object and null have none.
func joined(n *appdef.JSONNode) (string, bool) {
	if n.Scalar() {
		return n.Text, true
	}
	if n.Kind != appdef.JSONArray {
		return "", false
	}
	parts := make([]string, len(n.Items))
	for i, item := range n.Items {
		text, ok := joined(item)
		if !ok && item.Kind != appdef.JSONNull {
			return "", false
		}
		parts[i] = text
	}
	return strings.Join(parts, ","), true
}

// unnamedVariable matches what the name of a variable cannot have.
var unnamedVariable = regexp.MustCompile(`[^A-Za-z0-9_]+`)

// variable is the variable of a secret; its value is only in the App, and in none of its texts.
func (s scope) variable(name, value string) string {
	path := strings.TrimPrefix(name, "$secrets.")
	variable := "PAI_SECRET_" + unnamedVariable.ReplaceAllString(path, "_")
	for s.secretNames[variable] != "" && s.secretNames[variable] != path {
		variable += "_"
	}
	s.secretNames[variable] = path
	s.draft.App.JobSecrets[path] = value
	return variable
}
