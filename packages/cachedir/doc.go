// Package cachedir opens folders of the user's cache that hold what will be run, and locks files in them. It knows
// nothing of their content.
//
// It promises that no other user can replace a folder that it opened. Such a folder belongs to its user alone.
// A Lock owns its file, which is locked by flock(2), until it is released or its process ends; lock files are never
// removed. Default says where the cache is: XDG_CACHE_HOME, the home, or a folder of this host.
//
// Callers: packages/image and shim/store/cache keep their caches here; other rooms ask for Default or Wait.
package cachedir
