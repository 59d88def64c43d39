package render

import (
	"slices"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/shim/launcher"
)

// The answers, as shim/launcher has them: what the agents end with and what launchers are told is one table.
const (
	Done      = launcher.Done
	Again     = launcher.Again
	Elsewhere = launcher.Elsewhere
	Never     = launcher.Never
)

// Answer is what a launcher is to do when an agent has ended.
type Answer = launcher.Answer

// ExitMap is the `--exit-code-map` of all job files.
const ExitMap = launcher.ExitMap

// codes are all exit codes that an agent may end with.
var codes = launcher.Codes()

// answered are the codes with these answers.
func answered(answers ...Answer) []int { return launcher.CodesOf(answers...) }

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
