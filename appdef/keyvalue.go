package appdef

import (
	"slices"
	"strconv"
	"strings"
)

// wanted is the error of a key's parser. An empty got stands for the value itself, quoted.
type wanted struct{ got, want, hint string }

func (w wanted) Error() string { return "want " + w.want }

func notEmpty(text string) error {
	if strings.TrimSpace(text) == "" {
		return wanted{want: "a text"}
	}
	return nil
}

func setText(at *string, text string) error {
	*at = text
	return notEmpty(text)
}

func setDuration(at *Seconds, text string) error {
	s, err := ParseDuration(text)
	if err != nil {
		return wanted{want: "a duration such as " + durationForms}
	}
	*at = s
	return nil
}

// setLimit is setDuration for a time that cannot be 0.
func setLimit(at *Seconds, text string) error {
	s, err := ParseDuration(text)
	if err != nil || s == 0 {
		return wanted{want: "a duration above 0, such as " + durationForms}
	}
	*at = s
	return nil
}

func setNamed(at *map[string]string, name, text string, ok bool, want string) error {
	if !ok {
		return wanted{got: quote(name), want: want}
	}
	if *at == nil {
		*at = map[string]string{}
	}
	(*at)[name] = text
	return nil
}

func atLeast(least int, text string) (int, error) {
	n, err := ParseInt(text)
	if err != nil || n < least {
		return least, wanted{want: "a whole number, " + strconv.Itoa(least) + " or more"}
	}
	return n, nil
}

// parseShare reads a share of a whole: 0.5, 2.
func parseShare(text string) (float64, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !(f >= 0 && f <= 100) {
		return 0, wanted{want: "a number from 0 to 100, such as 0.5"}
	}
	return f, nil
}

func parseBool(text string) (bool, error) {
	switch text {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, wanted{want: "true or false"}
}

// parseCount reads a number of instances; null is nil.
func parseCount(text string) (*int, error) {
	if text == "null" {
		return nil, nil
	}
	n, err := ParseInt(text)
	if err != nil || n < 1 {
		return nil, wanted{want: "a whole number, 1 or more, or null"}
	}
	return &n, nil
}

func wantSignal(text string) (string, error) {
	name, err := parseSignal(text)
	if err != nil {
		return "", wanted{want: "a signal such as TERM", hint: didYouMean(text, signals[:])}
	}
	return name, nil
}

func (s *AppSettings) setFramework(text string) error {
	s.Framework = text
	if text == "auto" || slices.Contains(Frameworks(), text) {
		return nil
	}
	return wanted{want: "auto, " + strings.Join(Frameworks(), ", "), hint: didYouMean(text, Frameworks())}
}

func (s *AppSettings) setAddress(text string) error {
	switch text {
	case AddressDNS:
		s.Address = text
	case "host":
		s.Address = ""
	default:
		return wanted{want: "host or " + AddressDNS}
	}
	return nil
}

func parseRole(text string) (Role, error) {
	roles := []string{string(RoleChief), string(RoleWorker), string(RolePS), string(RoleEvaluator), string(RoleService)}
	switch {
	case slices.Contains(roles, text):
		return Role(text), nil
	case text == "server": // MXNet's word
		return RolePS, nil
	}
	return RoleWorker, wanted{want: strings.Join(roles, ", "), hint: didYouMean(text, roles)}
}

func (r *Restart) setScope(text string) error {
	scopes := []string{string(ScopeInstance), string(ScopeGang), string(ScopeNever)}
	if !slices.Contains(scopes, text) {
		return wanted{want: strings.Join(scopes, ", "), hint: didYouMean(text, scopes)}
	}
	r.Scope, r.Explicit = scope(text), true
	return nil
}

func (r *Restart) setBudget(text string) error {
	n, err := ParseInt(text)
	if err != nil || n < -1 {
		return wanted{want: "a whole number, 0 or more, or -1 for no limit"}
	}
	r.Budget = n
	return nil
}

func (r *Restart) setWindow(text string) error { return setDuration(&r.Window, text) }

func (r *Restart) setBackoff(text string) error {
	low, high, err := parseDurationRange(text)
	if err != nil {
		return wanted{want: "a range of durations such as 1s..1m"}
	}
	r.BackoffMin, r.BackoffMax = low, high
	return nil
}

func (r *Restart) setRefill(text string) error {
	if text != "checkpoint" && text != "never" {
		return wanted{want: "checkpoint or never"}
	}
	r.Refill = text
	return nil
}

// setSecret keeps a reference. A literal is refused without repeating it: problems are printed and logged.
func (c *Component) setSecret(name, text string) error {
	if !secretForm.MatchString(text) {
		return wanted{
			got: "a literal value", want: "file:PATH, env:NAME or keyring:NAME",
			hint: "a definition holds no secrets",
		}
	}
	return setNamed(&c.Settings.Secrets, name, text, envForm.MatchString(name),
		"a variable's name after muster.secret.")
}

// Values of muster.secrets.form.
const (
	secretsBoth = "both"
	SecretsFile = "file"
	SecretsEnv  = "env"
)

func (c *Component) setSecretForm(_, text string) error {
	switch text {
	case secretsBoth:
		text = ""
	case SecretsFile, SecretsEnv:
	default:
		return wanted{want: "both, file or env"}
	}
	c.Settings.SecretForm = text
	return nil
}

func (c *Component) setUlimit(name, text string) error {
	if !slices.Contains(ulimits[:], name) {
		return wanted{
			got: quote(name), want: "one of " + strings.Join(ulimits[:], ", "),
			hint: didYouMean(name, ulimits[:]),
		}
	}
	if !limitForm.MatchString(text) {
		return wanted{want: "a number or unlimited, or soft:hard"}
	}
	return setNamed(&c.Limits.Ulimits, name, text, true, "")
}

// setStore accepts locations that muster can write to: HDFS, or a folder.
func setStore(s *AppSettings, text string) error {
	scheme, _, found := strings.Cut(text, ":")
	if scheme = strings.ToLower(scheme); !strings.HasPrefix(text, "/") &&
		(!found || scheme != "hdfs" && scheme != "file") {
		return wanted{want: "hdfs://HOST:PORT/FOLDER, or the path of a folder that all hosts see"}
	}
	s.Store = text
	return nil
}
