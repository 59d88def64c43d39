// Package cache gives a file of a store as a local one: Fetch loads it once, checks every byte, and keeps it in a cache
// that is addressed by content. The store is chosen by the scheme of the URL. The room knows no package format.
//
// The cache is the folder `fetch` of Request.CacheDir:
//
//	sha256/HEX      a complete file; read-only
//	index/KEY.json  the last content of a URL, and the validator that tells whether it has changed
//	partial/KEY     the bytes of a URL so far; KEY.json beside it has their version
//	locks/NAME      flock(2): url-KEY for loading, sha256-HEX for using (shared) or removing (alone)
//
// KEY is the sha256 of the URL. A file below sha256/ is complete, whatever process dies when: it was written below
// partial/, hashed from disk, synced and renamed. The room owns that folder and its locks; processes that want the same
// file share them. shim/openapp fetches packages by it, shim/data/manager files, packages/ship what it publishes.
package cache
