// Package web is the store of http servers. Files are read there, from a position on where the server can; it lists
// nothing, and nothing is written.
//
// It owns the connections of its http client. It promises that what was read is one version of the file, that redirects
// are bounded and lead nobody to what listens on this machine, and that no login is printed. Set.Open calls it.
package web
