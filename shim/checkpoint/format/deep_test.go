package format

import (
	"strings"
	"testing"
	"testing/fstest"
)

// A program nests folders without end in a checkpoint, which its agent looks at again and again.
func TestAttackDeepCheckpoint(t *testing.T) {
	for depth, ok := range map[int]bool{10: true, deepest + 1: false} {
		dir := fstest.MapFS{"step" + strings.Repeat("/d", depth): {}}
		if _, err := below(dir, "step"); (err == nil) != ok {
			t.Errorf("%d folders: %v, want them read: %t", depth, err, ok)
		}
	}
}
