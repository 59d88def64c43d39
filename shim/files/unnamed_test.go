package files

import (
	"os"
	"sync"
	"testing"
)

// Files of one name, made at the same time, are files of their own, and leave no name.
func TestUnnamed(t *testing.T) {
	folder, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	if err := folder.WriteFile("x", []byte("left by an agent that was killed"), 0o600); err != nil {
		t.Fatal(err)
	}
	var made sync.WaitGroup
	for range 50 {
		made.Go(func() {
			for range 20 {
				f, err := Unnamed(folder, "x")
				if err != nil {
					t.Error(err)
					return
				}
				if info, err := f.Stat(); err != nil || info.Size() != 0 {
					t.Errorf("got %v, %v, want an empty file", info, err)
				}
				f.Close()
			}
		})
	}
	made.Wait()
	if left, err := os.ReadDir(folder.Name()); err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
}
