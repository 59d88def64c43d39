// Package signals tells a signal that was sent twice at once from a second wish. It owns no handler: main and the verbs
// that run an app notify their own channels and ask Repeat about each signal.
package signals
