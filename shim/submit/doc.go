// Package submit is the store of files that a job brings to its hosts.
//
// What enters are local files and a store's URL; what leaves are URLs and paths that the hosts know. The package knows no
// definition and no launcher.
package submit
