package render

import (
	"strconv"
	"strings"
)

// Joined are numbers with a text between them.
func Joined(list []int, between string) string {
	words := make([]string, len(list))
	for i, n := range list {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, between)
}
