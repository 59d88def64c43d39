// Package ports gives an instance its port numbers without a race: ranges and names go in, numbers come out that no
// other process of this host gets until the instance's process binds them.
//
// It owns two things for each port. A lock among agents (shim/hostlock) is held from the claim until the
// agent ends, through all restarts of its process. A port that another user's agent announces is taken last. A
// bound TCP socket that does not listen keeps other programs out; it is closed right before the process starts
// (Release) and bound again after its end (Hold). Close gives up both. The agent makes an Instance;
// shim/prepare takes the ports, shim/process releases and holds them.
package ports
