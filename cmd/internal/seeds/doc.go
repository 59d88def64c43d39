// Package seeds says what is known of an app in the words of the systems that muster takes over from: the answers of
// HBox's web service, of PAI's REST server, and the view that Slider's publisher answers from.
//
// Facts and a definition go in; values that encode to those systems' JSON come out. It asks nobody and owns nothing,
// and promises no field that is not known: what muster has not is empty or null, and never invented.
//
// Callers: the page's server, and `muster slider`.
package seeds
