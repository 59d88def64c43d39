// Package lint tells the author of an app package what is wrong with it, and mends what can be mended in one way.
//
// Run loads the definition more strictly than Slider does, plans the first instance of each component, and reads the
// package's scripts with a Python of this host. Nothing of the package is run. The only files that it writes are those
// of the package's own folder, when the caller asks for fixes; each is replaced at once and keeps its mode. It starts
// one Python at most, ends it after ten seconds, and waits for it.
//
// Caller: `muster package lint`.
package lint
