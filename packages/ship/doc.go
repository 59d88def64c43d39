// Package ship brings an app package from its author to those who run it: it builds the archive, puts it and its
// signature where others fetch them, and takes it from there.
//
// It writes the archive, the copy or the folder that the caller names, whole or not at all, and removes a signature
// beside a file that it replaces: it would contradict the new file. Remote files are reached through shim/store;
// fetched packages lie in the cache of shim/store/cache.
//
// Callers: `muster package build`, `fetch` and `push`.
package ship
