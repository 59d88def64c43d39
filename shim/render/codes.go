package render

import (
	"slices"
	"strconv"
	"strings"
)

// exits are those codes of an agent that a program ends with by itself, no signal.
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
