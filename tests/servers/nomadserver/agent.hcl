# One Nomad agent, server and client, on 127.0.0.1 for tests and by hand (scripts/lab/nomad); who starts it adds ports, data_dir,
# and the client's cgroup_parent and dynamic ports.
name = "lab"
bind_addr = "127.0.0.1"
disable_update_check = true
leave_on_interrupt = false
leave_on_terminate = false

advertise {
  http = "127.0.0.1"
  rpc  = "127.0.0.1"
  serf = "127.0.0.1"
}

server {
  enabled          = true
  bootstrap_expect = 1
  raft_multiplier  = 1
}

client {
  enabled           = true
  network_interface = "lo"
  # MHz: a small machine takes as many tasks as a test wants
  cpu_total_compute = 64000
  # percent: a host whose disk is nearly full keeps the files of allocations that have ended, which tests read
  gc_disk_usage_threshold  = 100
  gc_inode_usage_threshold = 100
  # a task's own files are the small part of Debian that a shell needs; a job adds to them by a bind mount or a root of its own
  chroot_env {
    "/etc/passwd" = "/etc/passwd"
    "/etc/group" = "/etc/group"
    "/etc/nsswitch.conf" = "/etc/nsswitch.conf"
    "/usr/bin/env" = "/usr/bin/env"
    "/usr/bin/dash" = "/bin/sh"
    "/usr/bin/cat" = "/bin/cat"
    "/usr/bin/sleep" = "/bin/sleep"
    # not /lib64, whose link would lead out of the chroot
    "/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2" = "/lib64/ld-linux-x86-64.so.2"
    "/lib/x86_64-linux-gnu/libc.so.6" = "/lib/x86_64-linux-gnu/libc.so.6"
  }
  options {
    "fingerprint.denylist" = "env_aws,env_gce,env_azure,env_digitalocean,consul,vault,cni,bridge"
  }
}

plugin "raw_exec" {
  config { enabled = true }
}

# nothing is registered anywhere unless a test says so
consul {
  auto_advertise   = false
  server_auto_join = false
  client_auto_join = false
}
