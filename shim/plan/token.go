package plan

// Tokens of a plan for values that are known later. Resolve fills in the folders; Finish and Publish fill in the rest.
// `${ps_HOST}` and `{{checkpoint}}` are the definition's own placeholders for what only the start knows.
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
