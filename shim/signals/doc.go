// Package signals tells one request to stop that arrives as two signals from two requests.
//
// timeout(1) and some launchers signal the process and then its group. Repeat recognises the second copy by its time.
// It owns no handler: `muster run` and the agent (shim/stoprequest.go) notify their own channels and ask Repeat about
// each signal.
package signals
