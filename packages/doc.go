// Package packages reads app packages as files: it opens a folder or an archive as an fs.FS, unpacks it on disk, and
// packs a folder as an archive. It knows nothing of what the files mean.
//
// A path comes in; a Package, or files below a folder, go out. An open Package owns its handles and temporary folders
// until Close; beyond them the room keeps nothing.
//
// A package is not trusted. The room promises that no path and no link leaves the package, that an archive unpacks to
// no more than its Limits, and that the same files are packed to the same bytes. A refused archive is a RefusedError.
//
// Callers: shim/openapp opens packages, shim/prepare and shim/data/manager unpack them, packages/ship and shim/submit
// pack them; `muster slider` and hbox-submit copy files.
package packages
