// Package message makes the messages to the service manager: one line of status, and how long to wait.
//
// systemd has its own limits for the start and the stop of a service. Muster's limits (staging, barrier, grace, leaving
// outputs) may be longer, so that each notification asks for the rest of the limit that holds now. The room is pure: it
// owns nothing and takes the agent's state as a value. It promises one short line without line breaks, and no wait
// longer than the limit of the current work. The agent calls it; shim/notify sends the answer.
package message
