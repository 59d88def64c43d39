// Package delivery tells the operator's notifier of an app's events: a command that gets a message on its stdin, or an
// URL that it is posted to.
//
// It owns a queue and one goroutine. Nobody waits for the notifier: Send drops what the full queue cannot take, each
// message is tried at most five times within a minute, and Close waits a few seconds for what is left. It promises a
// warning for what could not be told, without the path of a URL or a header's value, which may be secrets.
package delivery
