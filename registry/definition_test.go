package registry_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/muster-agent/muster/registry"
)

func TestDefinitionInChunks(t *testing.T) {
	for _, size := range []int{0, 1, registry.ChunkSize, registry.ChunkSize + 1, 3*registry.ChunkSize + 7} {
		def := strings.Repeat("0123456789", size/10+1)[:size]
		id, chunks := registry.DefID(def), registry.CutDef(def)
		for _, c := range chunks {
			if len(c) > registry.ChunkSize {
				t.Errorf("%d bytes: a chunk of %d", size, len(c))
			}
		}
		back, err := registry.JoinDef(id, chunks)
		if err != nil || back != def {
			t.Errorf("%d bytes come back as %d, %v", size, len(back), err)
		}
		if size == 0 {
			continue
		}
		if _, err := registry.JoinDef(id, chunks[1:]); !errors.Is(err, registry.ErrDefinitionDiffers) {
			t.Errorf("%d bytes without the first chunk: %v", size, err)
		}
		other := slices.Clone(chunks)
		other[0] = append([]byte("x"), other[0][1:]...)
		if _, err := registry.JoinDef(id, other); !errors.Is(err, registry.ErrDefinitionDiffers) {
			t.Errorf("%d bytes, one of them another: %v", size, err)
		}
	}
}
