// Package troubles is the catalogue of errors: what a message, a class, an exit code or a cause of a verdict means, and
// how to mend it.
//
// `muster help errors` prints the catalogue, and doc/troubleshooting.md is printed from it. A test holds it to the
// product: each exit code, class and cause has a row, and the words of each symptom stand in the product's messages.
// The room is pure: it owns nothing.
package troubles
