// Package timeline turns the events of an app's instances into what a person asks of a run: which generations there
// were and why each began, which phase an instance was in and when, and where the time went. Pure: it owns nothing.
//
// Callers: muster events --summary, and the page of muster ui.
package timeline
