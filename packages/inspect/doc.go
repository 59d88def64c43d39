// Package inspect says what an app package has: its components, exports, files, digest and signature, and what the
// packages of the catalog are.
//
// It only reads, and owns nothing: the caller opens the package and closes it. A signature is shown, not checked;
// packages/sign does that.
//
// Callers: `muster package inspect` and `muster package ls`.
package inspect
