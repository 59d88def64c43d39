// Package notify tells the service manager that started an agent how the agent is: sd_notify(3), as systemd reads it.
//
// It owns one goroutine, until Close, which asks for the agent's message and sends what has changed: STATUS, READY,
// STOPPING, longer limits, signs of life. It promises that a sign of life is sent only while the agent answers, so that
// the manager notices an agent that hangs. Without a manager it sends nothing. The agent makes one Notifier for its
// whole life; shim/notify/message says what is sent.
package notify
