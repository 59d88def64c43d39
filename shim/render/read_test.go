package render_test

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/coreos/go-systemd/v22/unit"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"go.yaml.in/yaml/v3"
)

// What follows reads job files as their launchers do, up to the words that the agent is started with.

// driverWords is what Nomad's clients make of a driver's words: each is a template of HCL's (helper/pluginutils/hclutils of
// Nomad 1.6). Anything in it that would be filled in is an error here.
func driverWords(command string, args []string) ([]string, error) {
	var out []string
	for _, word := range append([]string{command}, args...) {
		template, problems := hclsyntax.ParseTemplate([]byte(word), "config", hcl.InitialPos)
		if problems.HasErrors() {
			return nil, problems
		}
		value, problems := template.Value(nil)
		if problems.HasErrors() {
			return nil, problems
		}
		out = append(out, value.AsString())
	}
	return out, nil
}

// hclWords are each task's command lines in a job of Nomad's.
func hclWords(text string) ([][]string, error) {
	file, problems := hclsyntax.ParseConfig([]byte(text), "job.nomad.hcl", hcl.InitialPos)
	if problems.HasErrors() {
		return nil, problems
	}
	var all [][]string
	var walk func(*hclsyntax.Body) error
	walk = func(body *hclsyntax.Body) error {
		for _, block := range body.Blocks {
			if block.Type != "task" {
				if err := walk(block.Body); err != nil {
					return err
				}
				continue
			}
			words, err := taskWords(block.Body)
			if err != nil {
				return err
			}
			all = append(all, words)
		}
		return nil
	}
	body, _ := file.Body.(*hclsyntax.Body)
	return all, walk(body)
}

func taskWords(task *hclsyntax.Body) ([]string, error) {
	var command string
	var args []string
	for _, block := range task.Blocks {
		for name, attribute := range block.Body.Attributes {
			value, problems := attribute.Expr.Value(nil)
			switch {
			case problems.HasErrors():
				return nil, problems
			case block.Type == "config" && name == "command":
				command = value.AsString()
			case block.Type == "config" && name == "args":
				for _, one := range value.AsValueSlice() {
					args = append(args, one.AsString())
				}
			}
		}
	}
	return driverWords(command, args)
}

// apiWords are the same of a job as Nomad's API takes it.
func apiWords(text string) ([][]string, error) {
	var job struct {
		Job struct {
			TaskGroups []struct {
				Tasks []struct {
					Config struct {
						Command string
						Args    []string
					}
				}
			}
		}
	}
	var all [][]string
	err := json.Unmarshal([]byte(text), &job)
	for _, g := range job.Job.TaskGroups {
		for _, t := range g.Tasks {
			words, err := driverWords(t.Config.Command, t.Config.Args)
			if err != nil {
				return nil, err
			}
			all = append(all, words)
		}
	}
	return all, err
}

// unitWords is ExecStart= of a service.
func unitWords(text string) ([][]string, error) {
	options, err := unit.DeserializeOptions(strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	var all [][]string
	for _, o := range options {
		if o.Section == "Service" && o.Name == "ExecStart" {
			words, err := systemdSplit(o.Value)
			if err != nil {
				return nil, err
			}
			all = append(all, words)
		}
	}
	return all, nil
}

// systemdSplit reads a command line as systemd.syntax(7), systemd.unit(5) and systemd.service(5) say: quotes, C's escapes,
// then `%%`, then `$$`. Anything else that would be filled in is an error here.
func systemdSplit(text string) ([]string, error) {
	var words []string
	text = strings.ReplaceAll(text, "\\\n", " ")
	for i := 0; i < len(text); {
		if strings.IndexByte(" \t\n", text[i]) >= 0 {
			i++
			continue
		}
		word, quote := []byte{}, byte(0)
	word:
		for ; i < len(text); i++ {
			switch c := text[i]; {
			case quote == 0 && strings.IndexByte(" \t\n", c) >= 0:
				break word
			case quote == 0 && (c == '"' || c == '\''):
				quote = c
			case c == quote:
				quote = 0
			case c == '\\':
				var code byte
				switch i++; text[i] {
				case 'n':
					code = '\n'
				case 'x':
					if _, err := fmt.Sscanf(text[i+1:i+3], "%02x", &code); err != nil {
						return nil, err
					}
					i += 2
				case '\\', '"', '\'':
					code = text[i]
				default:
					return nil, fmt.Errorf("unknown escape \\%c", text[i])
				}
				word = append(word, code)
			default:
				word = append(word, c)
			}
		}
		if quote != 0 {
			return nil, fmt.Errorf("no end of quotes in %q", text)
		}
		plain, err := halved(string(word), '%')
		if err == nil {
			plain, err = halved(plain, '$')
		}
		if err != nil {
			return nil, err
		}
		words = append(words, plain)
	}
	return words, nil
}

// halved makes one sign of two; one alone would be filled in.
func halved(text string, sign byte) (string, error) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == sign {
			if i++; i == len(text) || text[i] != sign {
				return "", fmt.Errorf("%c alone in %q", sign, text)
			}
		}
		b.WriteByte(text[i])
	}
	return b.String(), nil
}

// podWords are the containers' command lines, `$(NAME)` filled in as a kubelet does: known names, and `$$` for a `$`.
func podWords(text string) ([][]string, error) {
	var all [][]string
	d := yaml.NewDecoder(strings.NewReader(text))
	for {
		var doc any
		if err := d.Decode(&doc); err != nil {
			if err.Error() == "EOF" {
				return all, nil
			}
			return nil, err
		}
		var walk func(any)
		walk = func(v any) {
			switch v := v.(type) {
			case []any:
				for _, one := range v {
					walk(one)
				}
			case map[string]any:
				if args, ok := v["args"].([]any); ok {
					command, _ := v["command"].([]any)
					var words []string
					for _, one := range append(command, args...) {
						word, _ := one.(string)
						words = append(words, kubeletExpand(word))
					}
					all = append(all, words)
				}
				for _, one := range v {
					walk(one)
				}
			}
		}
		walk(doc)
	}
}

func kubeletExpand(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '$' || i+1 == len(text) {
			b.WriteByte(text[i])
			continue
		}
		i++
		switch end := strings.IndexByte(text[i:], ')'); {
		case text[i] == '$':
			b.WriteByte('$')
		case text[i] == '(' && end > 0 && text[i+1:i+end] == "RESTART_ATTEMPT":
			b.WriteString("0")
			i += end
		case text[i] == '(' && end > 0 && text[i+1:i+end] == "HOME":
			b.WriteString("/root")
			i += end
		default:
			b.WriteByte('$')
			b.WriteByte(text[i])
		}
	}
	return b.String()
}

// launchCommands are those of a service of YARN.
func launchCommands(text string) ([]string, error) {
	var service struct {
		Components []struct {
			LaunchCommand string `json:"launch_command"`
		}
	}
	err := json.Unmarshal([]byte(text), &service)
	var all []string
	for _, c := range service.Components {
		all = append(all, c.LaunchCommand)
	}
	return all, err
}

// nodeManager does to a command what YARN's services and a NodeManager do before a shell sees it: `${USER}` and other
// tokens, `<LOG_DIR>` and the like, `{{NAME}}`. What is left is put between double quotes.
func nodeManager(command string) string {
	for _, token := range []string{"USER", "COMPONENT_ID", "COMPONENT_NAME", "HOME", "PATH"} {
		command = strings.ReplaceAll(command, "${"+token+"}", "FILLED")
	}
	return strings.NewReplacer("<LOG_DIR>", "/logs", "<CPS>", ":", "<ADD_OPENS>", "", "{{", "$", "}}", "").Replace(command)
}

// launched are the words that reach the agent through the two shells of a container.
func launched(command string) ([]string, error) {
	inner, err := undouble(nodeManager(command))
	if err != nil {
		return nil, err
	}
	return shellSplit(inner)
}

// undouble is what a shell makes of a text between double quotes.
func undouble(text string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text) && strings.IndexByte("\\\"$`", text[i+1]) >= 0:
			i++
			b.WriteByte(text[i])
		case c == '"' || c == '$' || c == '`':
			return "", fmt.Errorf("a bare %c in %q", c, text)
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), nil
}

// shellSplit reads words of which special signs stand between single quotes or behind a backslash.
func shellSplit(text string) ([]string, error) {
	var words []string
	word, open := "", false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == ' ' || c == '\n':
			if open {
				words = append(words, word)
			}
			word, open = "", false
		case c == '\'':
			end := strings.IndexByte(text[i+1:], '\'')
			if end < 0 {
				return nil, fmt.Errorf("no end of quotes in %q", text)
			}
			word, open = word+text[i+1:i+1+end], true
			i += end + 1
		case c == '\\' && i+1 < len(text):
			i++
			word, open = word+text[i:i+1], true
		case strings.IndexByte("\"$`;&|<>()*?[]#~!{}\\", c) >= 0:
			return nil, fmt.Errorf("a bare %c in %q", c, text)
		default:
			word, open = word+text[i:i+1], true
		}
	}
	if open {
		words = append(words, word)
	}
	return words, nil
}
