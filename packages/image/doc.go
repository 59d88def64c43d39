// Package image makes the layers of a container image ready as folders. Enters a reference of a registry or an OCI
// layout on disk; leave the unpacked layers as overlayfs wants its lower folders, and what the image says of its
// process. It mounts nothing, starts nothing and knows no package format.
//
// An image is not trusted. Every byte is checked against its digest before anything is visible; entries of a layer
// stay inside the layer's folder; what is mounted or run is decided elsewhere.
//
// The cache is a folder of one user, shared by all agents of that user on the host:
//
//	<cache>/image/                      0700: setuid files of an image are not for other users of the host
//	  blobs/<algorithm>/<hex>           manifests, indexes and configurations; kept
//	  refs/<sha256 of the name>.json    what a name last referred to, for when the registry is unreachable
//	  partial/<algorithm>-<hex>         a layer's blob while it is fetched; continued after a break, removed when
//	                                    it is unpacked
//	  layers/<algorithm>/<diff id>/fs   a layer as root unpacks it: owners kept, overlay marks in trusted.*
//	  layers/<algorithm>/<diff id>-u<uid>/fs   as a plain user does: all is that user's, overlay marks in user.*
//	  layers/<algorithm>/<diff id>-o<owners>/fs  a copy of the first with a container's owners, see WithOwners
//	  locks/                            a file for each layer and blob, locked by flock(2)
//
// A layer's lock is held exclusively by the process that makes or removes the folder and shared by its users; it ends
// with its holder. The lock file's time of change is when the layer was last asked for.
package image
