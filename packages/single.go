package packages

import (
	"archive/zip"
	"bytes"
	"fmt"
)

// Single is a package of one file that is not on disk.
func Single(name string, data []byte) (*Package, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	file, err := w.Create(name)
	if err == nil {
		_, err = file.Write(data)
	}
	if closing := w.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return nil, fmt.Errorf("package of %s: %w", name, err)
	}
	r, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		return nil, fmt.Errorf("package of %s: %w", name, err)
	}
	return &Package{FS: r, Name: BaseName(name)}, nil
}
