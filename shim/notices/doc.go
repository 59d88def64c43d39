// Package notices says which events of an app the operator's notifier is told of, and by which agent: Watch reads them
// off the machine of its agent, and Message is their form in JSON, a contract with receivers.
//
// It is pure and owns no state beyond the Watch. It promises that each event of the gang (start, restart, verdict)
// comes from the agent that wrote the directive, and each of an instance from its own agent, always with the same ID.
// Package delivery sends the messages; the agent wires both. shim/notify is something else: systemd's sd_notify.
package notices
