package ownfolder

import "testing"

func TestNamespaced(t *testing.T) {
	for text, want := range map[string]bool{
		"         0          0 4294967295\n":                                   false,
		"         0       1000          1\n         1     100000      65536\n": true,
		"0 0 65536\n": true,
	} {
		if got := namespaced(text); got != want {
			t.Errorf("%q: got %t", text, got)
		}
	}
}
