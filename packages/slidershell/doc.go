// Package slidershell holds resource_management, the Python library that Slider's command scripts import, and lays it
// out for the Python that runs the scripts.
//
// Advice reads from a script's stderr that it failed by Python 2's language, and says what to write in its place.
//
// The room owns nothing but the library's sources, and runs nothing. LayOut replaces a folder below a given os.Root,
// with modes that do not depend on the umask.
//
// Callers: shim/prepare lays the library out; shim/process and packages/lint ask for advice.
package slidershell
