package registry

import (
	"fmt"
	"strconv"
	"strings"
)

// Instance names one numbered copy of a component.
type Instance struct {
	Component string `json:"c"`
	Index     int    `json:"i"`
}

// String prints `worker-1`.
func (i Instance) String() string { return i.Component + "-" + strconv.Itoa(i.Index) }

// ParseInstance splits `COMPONENT-INDEX` at the last dash.
func ParseInstance(s string) (Instance, error) {
	at := strings.LastIndexByte(s, '-')
	if at <= 0 || strings.ContainsAny(s, "/\x00") { // it is the name of a folder, too
		return Instance{}, fmt.Errorf("instance %q: want COMPONENT-INDEX", s)
	}
	n, err := strconv.Atoi(s[at+1:])
	if err != nil || n < 0 || strconv.Itoa(n) != s[at+1:] {
		return Instance{}, fmt.Errorf("instance %q: want a number from 0 after the last dash", s)
	}
	return Instance{Component: s[:at], Index: n}, nil
}
