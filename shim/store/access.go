package store

import "context"

// Access says who may write to a folder. Mode has the permissions of Unix and the sticky bit as 01000.
type Access struct {
	Owner string
	Mode  uint32
}

// OthersWrite tells that others than the owner can replace what lies in the folder. In a folder with the sticky bit
// others can add files, but not replace or rename the owner's. An ACL shows in the group's bits: they are its mask.
func (a Access) OthersWrite() bool {
	const write, sticky = 0o022, 0o1000
	return a.Mode&write != 0 && a.Mode&sticky == 0
}

// Guarded is a store that knows who may write to its folders.
type Guarded interface {
	Access(ctx context.Context, path string) (Access, error)
}
