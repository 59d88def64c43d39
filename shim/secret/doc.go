// Package secret reads the values that a definition names by reference: file:PATH, env:NAME or keyring:NAME.
//
// It owns nothing and keeps nothing: the values go to the process that starts, and into no log. It promises that a
// definition reads no file that its process could not, no variable of the agent but those that the host's operator or
// their own names let it have, no key of root's, and that a value has at most Most bytes. shim/process reads secrets at
// each start; shim/prepare reads an image's credentials.
package secret
