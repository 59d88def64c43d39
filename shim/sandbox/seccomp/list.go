package seccomp

import "golang.org/x/sys/unix"

// The default is the one of Docker, as facts: which calls are permitted, and with which arguments. Source:
// default.json of github.com/moby/profiles/seccomp v0.3.0 (Apache-2.0), without the calls that amd64 and arm64 do
// not have, and without what it permits to holders of capabilities. rootCalls and numaCalls are ours.

// plainCalls are permitted with any arguments.
const plainCalls = `
accept accept4 access adjtimex alarm bind brk cachestat capget capset chdir chmod chown clock_adjtime
clock_adjtime64 clock_getres clock_getres_time64 clock_gettime clock_gettime64 clock_nanosleep
clock_nanosleep_time64 close close_range connect copy_file_range creat dup dup2 dup3 epoll_create epoll_create1
epoll_ctl epoll_ctl_old epoll_pwait epoll_pwait2 epoll_wait epoll_wait_old eventfd eventfd2 execve execveat exit
exit_group faccessat faccessat2 fadvise64 fallocate fanotify_mark fchdir fchmod fchmodat fchmodat2 fchown
fchownat fcntl fdatasync fgetxattr flistxattr flock fork fremovexattr fsetxattr fstat fstatfs fsync ftruncate
futex futex_requeue futex_time64 futex_wait futex_waitv futex_wake futimesat get_robust_list get_thread_area
getcpu getcwd getdents getdents64 getegid geteuid getgid getgroups getitimer getpeername getpgid getpgrp getpid
getppid getpriority getrandom getresgid getresuid getrlimit getrusage getsid getsockname getsockopt gettid
gettimeofday getuid getxattr getxattrat inotify_add_watch inotify_init inotify_init1 inotify_rm_watch io_cancel
io_destroy io_getevents io_pgetevents io_pgetevents_time64 io_setup io_submit ioctl ioprio_get ioprio_set kill
landlock_add_rule landlock_create_ruleset landlock_restrict_self lchown lgetxattr link linkat listen listmount
listxattr listxattrat llistxattr lremovexattr lseek lsetxattr lstat madvise map_shadow_stack membarrier
memfd_create memfd_secret mincore mkdir mkdirat mknod mknodat mlock mlock2 mlockall mmap mprotect mq_getsetattr
mq_notify mq_open mq_timedreceive mq_timedreceive_time64 mq_timedsend mq_timedsend_time64 mq_unlink mremap mseal
msgctl msgget msgrcv msgsnd msync munlock munlockall munmap name_to_handle_at nanosleep newfstatat open openat
openat2 pause pidfd_open pidfd_send_signal pipe pipe2 pkey_alloc pkey_free pkey_mprotect poll ppoll ppoll_time64
prctl pread64 preadv preadv2 prlimit64 process_mrelease process_vm_readv process_vm_writev pselect6
pselect6_time64 ptrace pwrite64 pwritev pwritev2 read readahead readlink readlinkat readv recvfrom recvmmsg
recvmmsg_time64 recvmsg remap_file_pages removexattr removexattrat rename renameat renameat2 restart_syscall
rmdir rseq rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait
rt_sigtimedwait_time64 rt_tgsigqueueinfo sched_get_priority_max sched_get_priority_min sched_getaffinity
sched_getattr sched_getparam sched_getscheduler sched_rr_get_interval sched_rr_get_interval_time64
sched_setaffinity sched_setattr sched_setparam sched_setscheduler sched_yield seccomp select semctl semget semop
semtimedop semtimedop_time64 sendfile sendmmsg sendmsg sendto set_robust_list set_thread_area set_tid_address
setfsgid setfsuid setgid setgroups setitimer setpgid setpriority setregid setresgid setresuid setreuid setrlimit
setsid setsockopt setuid setxattr setxattrat shmat shmctl shmdt shmget shutdown sigaltstack signalfd signalfd4
socketpair splice stat statfs statmount statx symlink symlinkat sync sync_file_range syncfs sysinfo tee tgkill
time timer_create timer_delete timer_getoverrun timer_gettime timer_gettime64 timer_settime timer_settime64
timerfd_create timerfd_gettime timerfd_gettime64 timerfd_settime timerfd_settime64 times tkill truncate umask
uname unlink unlinkat uretprobe utime utimensat utimensat_time64 utimes vfork vmsplice wait4 waitid write writev
`

// archCalls are permitted where the architecture has them: thread-local storage and segments of amd64.
const archCalls = "arch_prctl modify_ldt"

// rootCalls are permitted because a root of an app has the capability: CAP_SYS_CHROOT.
const rootCalls = "chroot"

// numaCalls place the caller's own memory. moby wants CAP_SYS_NICE for them; MPI, NCCL, numactl and the JVM call
// them, the kernel asks no capability, and placement is what a gang on large hosts is about.
const numaCalls = "get_mempolicy mbind set_mempolicy set_mempolicy_home_node"

// newNamespaces are the flags of clone(2) that make a namespace. The call without them makes threads and processes.
// CLONE_NEWTIME is none of its flags: clone takes that bit for a signal's number.
const newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// personalities are the values that personality(2) may be given: PER_LINUX, PER_LINUX32, each with UNAME26, and the
// question for the present one.
var personalities = []uint64{0, 8, 0x20000, 0x20008, 0xffffffff}

// families are those of socket(2). AF_ALG and AF_VSOCK, which reach the kernel's cryptography and the hypervisor,
// are not among them, nor are AF_AX25 and other protocols that the kernel has dropped. A raw or packet socket
// takes CAP_NET_RAW as well.
var families = []uint64{
	unix.AF_UNSPEC, unix.AF_UNIX, unix.AF_INET, unix.AF_BRIDGE, unix.AF_ATMPVC, unix.AF_X25, unix.AF_INET6,
	unix.AF_NETBEUI, unix.AF_SECURITY, unix.AF_KEY, unix.AF_NETLINK, unix.AF_PACKET, unix.AF_ASH, unix.AF_RDS,
	unix.AF_SNA, unix.AF_PPPOX, unix.AF_LLC, unix.AF_IB, unix.AF_MPLS, unix.AF_CAN, unix.AF_TIPC, unix.AF_BLUETOOTH,
	unix.AF_IUCV, unix.AF_RXRPC, unix.AF_PHONET, unix.AF_IEEE802154, unix.AF_NFC, unix.AF_KCM, unix.AF_QIPCRTR,
	unix.AF_SMC, unix.AF_XDP, unix.AF_MCTP,
}
