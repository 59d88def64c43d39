// Command lab is what `scripts/lab/hadoop up|down|hdfs` runs: an HDFS for a person, by the same code as the tests'.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"

	"github.com/muster-agent/muster/tests/servers/hadoop"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		if ended, ok := errors.AsType[*exec.ExitError](err); ok {
			os.Exit(ended.ExitCode()) // what went wrong it has said itself
		}
		fmt.Fprintln(os.Stderr, "hadoop:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 2 {
		return errors.New("usage: lab up|down|hdfs DIR [ARG...]")
	}
	verb, dir := args[0], args[1]
	switch verb {
	case "up":
		return up(dir)
	case "down":
		return hadoop.Down(dir)
	}
	c, err := hadoop.Open(dir)
	if err != nil {
		return err
	}
	if len(args) < 3 {
		return errors.New("hdfs: which command? dfs, dfsadmin, haadmin, fsck")
	}
	cmd := c.HDFS(args[2:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}

func up(dir string) error {
	o := hadoop.Options{
		HA: os.Getenv("HA") == "1", Kerberos: os.Getenv("KERBEROS") == "1", Protection: os.Getenv("PROTECTION"),
	}
	if n := os.Getenv("DATANODES"); n != "" {
		var err error
		if o.DataNodes, err = strconv.Atoi(n); err != nil {
			return fmt.Errorf("DATANODES: %w", err)
		}
	}
	c, err := hadoop.Up(dir, o)
	if err != nil {
		return err
	}
	for _, entry := range c.Clients() {
		fmt.Println(entry)
	}
	fmt.Println(c.URI)
	return nil
}
