// Package need says what a test needs from the machine that it runs on. Where that is missing a
// person's run skips the test with the reason; with MUSTER_CI=1 it fails, so that a green run
// has left nothing out.
package need

import (
	"os"
	"testing"
)

// CI tells whether skipping is forbidden.
func CI() bool { return os.Getenv("MUSTER_CI") == "1" }

// Skip ends the test: skipped with the reason, failed under MUSTER_CI=1.
func Skip(t testing.TB, reason string) {
	t.Helper()
	if CI() {
		t.Fatalf("MUSTER_CI=1 forbids to skip: %s", reason)
	}
	t.Skip(reason)
}

// Root skips unless the test runs as root.
func Root(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		Skip(t, "needs root")
	}
}
