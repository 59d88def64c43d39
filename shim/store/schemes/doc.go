// Package schemes is the table of the stores that there are, by the scheme of a URL: a store that goes takes its line
// with it.
//
// It owns nothing. Whoever opens URLs that a user or a definition names makes a store.Set here: the agent, the verbs,
// and the rooms that are given one.
package schemes
