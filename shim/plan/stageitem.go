package plan

import "slices"

// StageItem is one thing to bring into the container.
type StageItem struct {
	Name   string `json:"name"`
	Kind   string `json:"kind"` // package, folder, tarball, zip, library, …
	From   string `json:"from"`
	To     string `json:"to"`               // under ${WORK}
	Digest string `json:"digest,omitempty"` // SHA-256 that the source must have; empty: any
	// Unchecked: the source is not looked up before the first item is brought.
	Unchecked bool `json:"unchecked,omitempty"`
}

// The kinds of StageItem that the app package holds. A package item is a link to the unpacked package, which all
// instances of this host share. The content of a folder or an archive replaces what To held.
const (
	StagePackage = "package"
	StageFolder  = "folder"
	StageTarball = "tarball"
	StageZip     = "zip"
	StageFile    = "file"
	StageLibrary = "library" // what scripts import; From is its name
	stageAddon   = "addon"   // an add-on's folder, as StageFolder
)

// The kinds of StageItem that lie in a store. From is a path or URL.
const (
	StageCopy     = "copy"     // a file or folder that is copied to To
	StageUnpacked = "unpacked" // an archive whose content is the folder To
	StageResource = "resource" // a file of application.resources, that is copied to To
	StageCode     = "code"     // a folder that is copied to To
	StageOutput   = "output"   // a folder that is created at From
)

// FromStore tells whether the item is data in a store and no part of the app package.
func (i StageItem) FromStore() bool {
	return slices.Contains([]string{StageCode, StageOutput, StageCopy, StageUnpacked, StageResource}, i.Kind)
}
