// Package ask asks a running app for something and follows what becomes of it: Stop, Flex, Save. A request goes to the
// app's conductor through its registry; the directive, the members and the verdict show the answer. Where the registry
// does not answer, Stop asks the agents of this host instead. Hold asks the agent of the one instance.
//
// It owns no process and starts no goroutine that outlives a call. A caller that leaves (Ctrl-C, a limit) takes no
// request back. Callers: stop, flex, save, hold, the page of muster ui, and Slider's words for them.
package ask
