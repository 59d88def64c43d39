package registry_test

import (
	"strings"
	"testing"

	"github.com/muster-agent/muster/registry"
)

// FuzzParseInstance: an instance's name is the only text that reads as it.
func FuzzParseInstance(f *testing.F) {
	for _, text := range []string{"worker-0", "a-b-3", "-1", "worker-", "worker-01", "worker-+1", "w--1", "worker-99999999999999999999", "é-1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		in, err := registry.ParseInstance(text)
		if err == nil && strings.Contains(in.Component, "/") {
			t.Errorf("ParseInstance(%q) leads to another folder", text)
		}
		if err != nil {
			return
		}
		if in.String() != text || in.Component == "" || in.Index < 0 {
			t.Errorf("ParseInstance(%q) = %+v", text, in)
		}
	})
}
