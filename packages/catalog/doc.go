// Package catalog carries the app packages that ship with muster: the APPs that catalog:NAME names.
//
// They are plain files, embedded as they lie beside this source: NAME/metainfo.json, appConfig.default.json,
// resources.default.json, package/ and README.md. A name comes in; the package's files go out as an fs.FS.
//
// The room owns nothing but these files. An unknown name is an error that lists the known ones (ErrUnknown).
// Callers: shim/openapp opens the packages, packages/inspect lists them, packages/skeleton begins new ones with them;
// the completion of the shell asks for their names.
package catalog
