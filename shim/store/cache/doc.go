// Package cache brings files from where they are kept to this machine, and puts them there. A Store is such a place; it
// is chosen by the scheme of a URL. Fetch gives a file of a store as a local one: loaded once, checked to the last
// byte, and kept in a cache that is addressed by content. It knows no package format.
//
// The cache is the folder `fetch` of Request.CacheDir:
//
//	sha256/HEX      a whole file; read-only
//	index/KEY.json  which content a URL had, and the validator by which it is seen to be unchanged
//	partial/KEY     what has come of a URL so far; KEY.json beside it says of which version
//	locks/NAME      flock(2): url-KEY for who loads, sha256-HEX for who uses (shared) or removes (alone)
//
// KEY is the sha256 of the URL. Whatever dies on whichever line, what stands under sha256/ is whole: it was written
// under partial/, its digest worked out from the disk, synced and renamed.
package cache
