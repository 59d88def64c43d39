package mask

import (
	"slices"
	"strings"
	"unicode"
)

// Shown stands in place of a secret value.
const Shown = "(secret)"

// words make a name one of a secret where they are a word of it: API_KEY, apiKey, api.key.
var words = []string{
	"KEY", "KEYS", "TOKEN", "TOKENS", "PASS", "PASSPHRASE", "PWD", "AUTH", "COOKIE", "SAS", "APIKEY", "ACCESSKEY",
	"SECRETKEY", "PRIVATEKEY",
}

// parts do so anywhere in a name: PGPASSWORD.
var parts = []string{"PASSWORD", "PASSWD", "SECRET", "CREDENTIAL"}

// ends do so at the end of a word: GITHUBTOKEN, but not TOKENIZER.
var ends = []string{"TOKEN", "APIKEY"}

// harmless are last words of names that say where a secret is, or how one is made.
var harmless = []string{
	"FILE", "FILES", "PATH", "DIR", "FOLDER", "LOCATION", "URL", "URI", "NAME", "ID", "TYPE", "METHOD", "MODE",
}

// named tells that a variable, a setting or a key of a configuration with this name has a secret value.
func named(name string) bool {
	all := split(name)
	if len(all) == 0 || slices.Contains(harmless, all[len(all)-1]) {
		return false
	}
	if len(all) == 1 && all[0] == "PWD" || len(all) == 1 && all[0] == "OLDPWD" { // the shell's folders
		return false
	}
	for _, w := range all {
		contains := func(part string) bool { return strings.Contains(w, part) }
		endsIn := func(end string) bool { return strings.HasSuffix(w, end) }
		if slices.Contains(words, w) || slices.ContainsFunc(parts, contains) || slices.ContainsFunc(ends, endsIn) {
			return true
		}
	}
	return false
}

// split are the words of a name, in capitals: at what is no letter or digit, and where a capital follows a
// small letter.
func split(name string) []string {
	var all []string
	var word []rune
	end := func() {
		if len(word) > 0 {
			all = append(all, strings.ToUpper(string(word)))
		}
		word = nil
	}
	var last rune
	for _, r := range name {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			end()
		case unicode.IsUpper(r) && unicode.IsLower(last):
			end()
			word = append(word, r)
		default:
			word = append(word, r)
		}
		last = r
	}
	end()
	return all
}

// shown is the value of that name as it may be shown.
func shown(name, value string) string {
	if value != "" && named(name) {
		return Shown
	}
	return value
}

// Values are a copy of the variables as they may be shown.
func Values(env map[string]string) map[string]string {
	if env == nil {
		return nil
	}
	all := make(map[string]string, len(env))
	for name, value := range env {
		all[name] = shown(name, value)
	}
	return all
}
