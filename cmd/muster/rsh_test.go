package main

import (
	"strings"
	"testing"
)

// A command line is read as ssh reads it: whoever calls an ssh may call this.
func TestParseRsh(t *testing.T) {
	for line, want := range map[string]rshOrder{
		"worker-1 orted -mca ess env":                            {instance: "worker-1", text: "orted -mca ess env"},
		"-x worker-1 orted":                                      {instance: "worker-1", text: "orted"},
		"-o BatchMode=yes -oPort=22 -p 22 -n worker-1 true":      {instance: "worker-1", text: "true", noInput: true},
		"-xnT root@worker-2 sh -c 'a b'":                         {instance: "worker-2", text: "sh -c 'a b'", noInput: true},
		"-- worker-1 -x":                                         {instance: "worker-1", text: "-x"},
		"-l user -q a-b-0 PATH=$PATH ; export PATH ; orted -n 3": {instance: "a-b-0", text: "PATH=$PATH ; export PATH ; orted -n 3"},
	} {
		got, err := parseRsh(strings.Fields(line))
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", line, got, err, want)
		}
	}
	for _, line := range []string{"", "worker-1", "-p 22 worker-1", "-n"} {
		if _, err := parseRsh(strings.Fields(line)); err == nil || !strings.Contains(err.Error(), "want INSTANCE COMMAND") {
			t.Errorf("%q: %v", line, err)
		}
	}
}
