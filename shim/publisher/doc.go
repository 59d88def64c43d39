// Package publisher answers the questions that Slider's application master answered: a package's scripts ask it for
// exports, configurations, live instances and a stop.
//
// A View, the whole app as the agent knows it, goes in; answers in Slider's shape (paths, JSON keys, words) come out.
// The room owns a listener of the agent's own with a path that cannot be guessed. It promises that nobody without
// that path gets an answer, and that a burst of questions reads the registry once. It knows no registry and no sandbox:
// each agent answers for the whole app. The agent serves it for its container; `muster slider` reads exports by it.
package publisher
