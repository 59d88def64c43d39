package container

import (
	"os"
	"strings"
)

// steps maps texts of libcontainer's errors to the step that failed. The texts name each of its functions; the last
// part is the cause.
var steps = []struct{ text, step string }{
	{"error mounting", "mount"},
	{"error creating device nodes", "make device nodes"},
	{"error jailing process", "enter the root"},
	{"unable to apply cgroup configuration", "make the cgroup"},
	{"error setting cgroup config", "set the cgroup's limits"},
	{"error running", "run a hook"},
	{"unable to start init", "start the first process"},
	{"cloned-binary", "seal the program"},
	{"/proc/self/exe clone", "seal the program"},
	{"can't mask path", "mask"},
	{"bootstrap", "enter the namespaces"},
	{"can't get final child's PID", "enter the namespaces"},
}

// stepError says at which step a container could not be made.
type stepError struct {
	Step string
	Hint string // what may be done about it; "": not known
	Err  error
}

func (e *stepError) Error() string {
	text := e.Step + ": " + shortCause(e.Err)
	if e.Hint != "" {
		text += " (" + e.Hint + ")"
	}
	return text
}

func (e *stepError) Unwrap() error { return e.Err }

func explain(err error) error {
	text := err.Error()
	for _, s := range steps {
		if strings.Contains(text, s.text) {
			return &stepError{Step: s.step, Hint: hint(s.step, text), Err: err}
		}
	}
	return err
}

// shortCause cuts the names of libcontainer's functions off.
func shortCause(err error) string {
	text := err.Error()
	for _, noise := range []string{
		"unable to start container process: ", "unable to create new parent process: ", "error during container init: ",
		"unable to apply cgroup configuration: ", "error setting cgroup config for procHooks process: ",
		"create mountpoint for ",
		"error preparing rootfs: ", "error jailing process inside rootfs: ",
	} {
		text = strings.ReplaceAll(text, noise, "")
	}
	return text
}

func hint(step, text string) string {
	refused := strings.Contains(text, "operation not permitted") || strings.Contains(text, "permission denied")
	switch {
	case step == "mount" && strings.Contains(text, `"overlay"`) && refused:
		return "an ordinary user may mount overlays from Linux 5.11 on, where the layers' filesystem allows it"
	case step == "mount" && strings.Contains(text, `"overlay"`) && strings.Contains(text, "invalid argument"):
		return "the container's folder must lie on a filesystem that can hold a writable layer: not on an overlay, " +
			"not on NFS"
	case step == "mount" && strings.Contains(text, `"proc"`) && refused:
		return "this process is in a container that masks parts of /proc: its launcher must not"
	case step == "mount" && strings.Contains(text, "read-only file system"):
		return "the folder is not there in the host's root, which is read-only"
	case step == "enter the namespaces" && os.Geteuid() != 0:
		return "user namespaces are forbidden: sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, " +
			"kernel.apparmor_restrict_unprivileged_userns"
	case refused && os.Geteuid() == 0:
		return "this process is root without CAP_SYS_ADMIN"
	}
	return ""
}
