package render

import (
	"slices"
	"strconv"
	"strings"
)

// Answer is what a launcher is to do when an agent has ended.
type Answer string

// The answers. Again: with the same run, wherever there is room; Elsewhere: likewise, and if the whole run has ended so, with
// a new one.
const (
	Done      Answer = "done"
	Again     Answer = "again"
	Elsewhere Answer = "elsewhere"
	Never     Answer = "never"
)

// Code is one exit code of an agent, as job files have agents end (ExitMap).
type Code struct {
	Code   int
	Answer Answer
	Why    string
}

// codes are the exit codes of an agent (`muster help exit-codes`) by what the verdict's class asks of a launcher. The
// process's own codes are not among them: ExitMap has turned them into 93.
var codes = []Code{
	{0, Done, "succeeded, or stopped by muster stop"},
	{64, Never, "the command line is wrong"},
	{65, Never, "the definition is wrong, or another than the gang's"},
	{69, Again, "the registry is out of reach, or data or an image is"},
	{70, Never, "a fault of muster's own"},
	{75, Elsewhere, "the host or a GPU was lost, or the container was taken away"},
	{76, Never, "a time limit of the app's"},
	{77, Never, "not permitted here"},
	{93, Never, "the program failed or ran out of memory, here or in another container"},
	{130, Again, "interrupted: stopped by the launcher, goes on when it is launched again"},
	{137, Again, "the agent was killed"},
	{143, Again, "interrupted, likewise"},
}

// Codes are all of them, sorted by number.
func Codes() []Code { return slices.Clone(codes) }

// ExitMap is the `--exit-code-map` of all job files. It turns the process's own exit codes into one that says "do not
// retry": a program's 75 is none of ours.
const ExitMap = "app-error=93,out-of-memory=93"

// answered are the codes with these answers.
func answered(answers ...Answer) []int {
	var out []int
	for _, c := range codes {
		if slices.Contains(answers, c.Answer) {
			out = append(out, c.Code)
		}
	}
	return out
}

// exits are those of them that a program ends with by itself, no signal.
func exits(list []int) []int {
	return slices.DeleteFunc(slices.Clone(list), func(n int) bool { return n > 128 })
}

func joined(list []int, between string) string {
	words := make([]string, len(list))
	for i, n := range list {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, between)
}
