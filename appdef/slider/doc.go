// Package slider loads a Slider app package (metainfo, appConfig, resources) into an appdef.App.
//
// What enters is the package's folder as an fs.FS and what the command line changes; what leaves
// is the App and all problems at once. The package refuses to know where the folder came from:
// archives, URLs and the catalog are opened by the caller.
//
// Facts about the formats are Apache Slider's (slider-core, slider-agent at 0.92). Where Slider
// accepts something in silence that cannot have been meant, this package reports it.
package slider
