// Package run plays a whole app on this machine: one agent per instance, until there is a verdict. Options are the
// settings of `muster run`, and Options.Run is that verb; hbox-submit and hbox-submit calls it too.
//
// It owns the run's work folder (by a lock), the embedded registry unless another one is named, the processes of the
// agents, and the screen of stderr while the run lasts. It relaunches agents as a launcher would, and writes
// app.json and result.json.
//
// It promises that an interrupted run leaves no agent behind, that result.json stands when Run returns after a verdict,
// and that a second run in the same work folder is refused.
package run
