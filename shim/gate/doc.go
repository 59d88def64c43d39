// Package gate asks for a key before a page: the agent listens at the port that a side process was given, and passes on
// to the program, which listens at the loopback, what shows the key.
//
// It promises that nothing reaches the program by that port without the key, nor an act that another page has a browser
// send with it, and that the program does not see the key. A key follows from the run's token, as the host keys of ssh
// do: who may read the app's keys in the registry can work it out, and nobody else. It owns the listener, the
// connections and the goroutines of Serve until its context is done. shim/process serves with it; shim/submit and the
// commands that show a page's URL put the key in.
package gate
