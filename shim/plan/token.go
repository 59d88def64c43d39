package plan

// Texts in a plan that stand for something known later. The folders are filled in by Resolve, the
// rest by Finish and Publish; `${ps_HOST}` and `{{checkpoint}}` are the definition's own words for
// what only the start knows.
const (
	Work   = "${WORK}" // the agent's work folder
	logDir = "${LOG}"  // its log folder

	portToken = "{{port." // + name + "}}"
	hostToken = "{{host}}"
)

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
