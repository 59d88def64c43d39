//go:build long

package scripts_test

import "testing"

// TestOwnerLong is TestOwner with every cell in every engine.
func TestOwnerLong(t *testing.T) {
	drive(t, func(cell, string, string) bool { return true })
}
