package stores

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Where the work folder lies in the default filesystem, the container gets the folders of the data alone.
func TestFoldersIn(t *testing.T) {
	top := t.TempDir()
	for _, dir := range []string{"in", "out", "work/store", "beside"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s := &Stores{WorkDir: filepath.Join(top, "work")}
	got := s.foldersIn(top, []string{
		"file:" + top + "/out", top + "/in", "file:" + top + "/in", "file:" + top, "hdfs://name/in", top + "/work/store", top + "/gone", top + "/..",
		filepath.Dir(top), "",
	})
	if want := []string{top + "/in", top + "/out"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
