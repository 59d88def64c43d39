// Package slider loads a Slider app package (metainfo, appConfig, resources) into an appdef.App, and writes one.
//
// The package's folder comes in as an fs.FS, with the changes of the command line; the App and all problems at once go
// out. The caller opens archives, URLs and the catalog: the room does not know where a folder comes from.
//
// It owns the shape of the documents, their schemas, Slider's own keys, and the advice of `muster package lint`. Facts
// about the formats are those of Apache Slider (slider-core, slider-agent at 0.92). If Slider silently accepts what
// cannot have been meant, the room reports it.
//
// It promises that an App that was written and loaded again is the same, less what Write names as
// unsupported. It is pure.
// Callers: shim/openapp and packages/inspect load packages, packages/lint loads and fixes them, appdef/convert and
// cmd/internal/hboxjob write them.
package slider
