package packages

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
)

// tar unpacks a tar that is packed in whichever way, to the last byte: a checksum at the end of the packing counts too.
func (x *extractor) tar(ctx context.Context, a *archive) error {
	plain, done, err := a.stream(ctx, x.budget)
	if err != nil {
		return err
	}
	defer done()
	r := tar.NewReader(plain)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			if err := onlyZeros(plain); err != nil {
				return err
			}
			return ended(plain)
		}
		if err != nil {
			return torn(err)
		}
		if err := x.tarEntry(h, r); err != nil {
			return at(h.Name, err)
		}
	}
}

func (x *extractor) tarEntry(h *tar.Header, r io.Reader) error {
	switch h.Typeflag {
	case tar.TypeDir:
		return x.folder(h.Name)
	case tar.TypeReg, tar.TypeGNUSparse: // one with holes is read with the holes filled
		return torn(x.file(h.Name, h.FileInfo().Mode(), r))
	case tar.TypeSymlink:
		return x.link(h.Name, h.Linkname)
	case tar.TypeLink:
		return x.hardLink(h.Name, h.Linkname)
	case tar.TypeXGlobalHeader:
		return nil
	}
	what := fmt.Sprintf("an entry of type %q", h.Typeflag)
	if h.FileInfo().Mode().Type() != 0 {
		what = "a " + KindName(h.FileInfo().Mode())
	}
	return refuse(badKind, "got "+what, "files, folders and links")
}

// onlyZeros reads what follows a tar's end, which is padding. Another tar there would be unpacked by some tools, so
// that what was looked at and what is unpacked could differ.
func onlyZeros(r io.Reader) error {
	buffer := make([]byte, 32<<10)
	for {
		n, err := r.Read(buffer)
		for _, b := range buffer[:n] {
			if b != 0 {
				return refuse(trailingData, "got data after the tar's end",
					"nothing there: pack it anew, not by joining archives")
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return torn(err)
		}
	}
}

// ended tells a tar that was cut between two entries by the two empty blocks that it lacks then.
func ended(r *boundedReader) error {
	if r.zeros >= 2*block {
		return nil
	}
	return refuse(tornArchive, "it breaks off: the tar has no end", "it whole: fetch or pack it again")
}
