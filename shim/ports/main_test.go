package ports

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const inNamespace = "PORTS_TEST_NAMESPACE"

// The tests run in a network namespace of their own where that is permitted: there nobody else takes ports. The test
// binary is also the second agent.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "as-claimer" {
		if err := asClaimer(os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if os.Getenv(inNamespace) == "" {
		if code, ok := again(); ok {
			os.Exit(code)
		}
	} else if err := loopbackUp(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func again() (code int, ok bool) {
	exe, err := os.Executable()
	if err != nil {
		return 0, false
	}
	cmd := exec.Command(exe, os.Args[1:]...)
	cmd.Env = append(os.Environ(), inNamespace+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
	}
	if err := cmd.Start(); err != nil {
		return 0, false // not permitted: run among the others
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); errors.As(err, &exit) {
		return exit.ExitCode(), true
	}
	return 0, true
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
}

// asClaimer claims n ports of a range, prints them and holds them until its input ends.
func asClaimer(ranges, n string) error {
	r, err := ParseRanges(ranges)
	if err != nil {
		return err
	}
	count, err := strconv.Atoi(n)
	if err != nil {
		return err
	}
	var want []Want
	for i := range count {
		want = append(want, Want{Name: strconv.Itoa(i)})
	}
	h, err := Claim(r, want, nil)
	if err != nil {
		return err
	}
	var numbers []string
	for _, p := range h.Ports() {
		numbers = append(numbers, strconv.Itoa(p))
	}
	fmt.Println(strings.Join(numbers, " "))
	_, err = bufio.NewReader(os.Stdin).ReadString('\n')
	if err != nil && err.Error() == "EOF" {
		err = nil
	}
	return errors.Join(err, h.Close())
}
