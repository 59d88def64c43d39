package plan

import (
	"strconv"
)

// Texts in a plan that stand for something known later. The folders are filled in by Resolve, the
// rest by Finish and Publish; `${ps_HOST}` and `{{checkpoint}}` are the definition's own words for
// what only the start knows.
const (
	Work   = "${WORK}" // the agent's work folder
	logDir = "${LOG}"  // its log folder

	portToken = "{{port." // + name + "}}"
	hostToken = "{{host}}"
)

// portTokens pairs the token of each port with its number: the one given, else the plan's, 0 when
// it is not claimed.
func portTokens(ports []Port, given map[string]int) []string {
	var pairs []string
	for _, p := range ports {
		n, ok := given[p.Name]
		if !ok {
			n = p.Port
		}
		pairs = append(pairs, portToken+p.Name+"}}", strconv.Itoa(n))
	}
	return pairs
}

func each(texts []string, f func(string) string) []string {
	out := make([]string, len(texts))
	for i, t := range texts {
		out[i] = f(t)
	}
	return out
}

func eachValue(texts map[string]string, f func(string) string) map[string]string {
	out := make(map[string]string, len(texts))
	for name, t := range texts {
		out[name] = f(t)
	}
	return out
}
