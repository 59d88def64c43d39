/*
 * The guard: what stands between an agent and the process it runs.
 *
 * Descriptors at the start
 *   0 1 2  /dev/null
 *   3      lifeline, read end of a pipe; EOF = the agent is dead
 *   4      SOCK_SEQPACKET to the agent; EOF = the same
 *
 * Every message is one `struct message`, host byte order. `start` is the number of the start that it
 * belongs to (the agent's attempt). An exec is a program beside the app, in the app's namespaces and cgroup;
 * the agent gives it a number that no living one has. Pids are those of the guard's pid namespace.
 *
 *   agent -> guard
 *   START    descriptors by SCM_RIGHTS: a sealed memfd (struct config), the folder of the logs, [stdin], [stdout], [procs]
 *   SIGNAL   a = signal, to the main process only; while a start is held, which has none, to all that it left
 *   KILL     kill every descendant until none is left; answered by EMPTY
 *   FEED     a = CLOCK_BOOTTIME ns at which the dead-man timer ends everything; 0 disarms; not armed at first
 *   EXEC     a = exec, b = rows, c = columns of its terminal
 *            descriptors: a sealed memfd, then stdin, stdout, stderr unless it says TERMINAL, [procs]
 *   EXECSIG  a = exec, b = signal, to the process group that its main process leads
 *   ADOPT    a = request, b = pid, which becomes the main process of a start that lingers; answered by DONE
 *   ENDED    a = request, b = pid; how it ended, if it is one of the last GUARD_RING reaped since STARTED; answered by DONE
 *   FINISH   a = request; a start that lingers ends as others do; answered by DONE
 *   SWEEP    a = request; while no start is under way kill every descendant; answered by DONE when none is left
 *   EXECKILL a = request, b = exec, text = its mark; kill what it started; answered by DONE when none is left
 *
 *   procs is optional: a cgroup.procs file, open for writing, into whose cgroup the child goes first of all. Of START,
 *   stdin and stdout are there when the payload says so: the agent's own, in place of /dev/null and of the log.
 *
 *   guard -> agent
 *   HELLO    a = GUARD_VERSION; the guard waits for orders
 *   STARTED  a = pid, b = start of the process in clock ticks after boot; the exec has happened
 *   EXITED   a = wait status and GUARD_EXIT_*, b = CLOCK_REALTIME ns, c = greatest resident size in KiB; what is left is
 *            being killed, once no exec is awaited
 *   EMPTY    a = 1 if all that was written is in the log files; no descendant exists
 *   ERROR    a = errno, text = act; a start that did not happen. The guard is ready for another one
 *   STUCK    a = pid, b = errno of kill(2) or 0, c = state, text = name; would not die for 5 s, every 10 s
 *   LOST     a = bytes, b = errno, c = 1 stdout, 2 stderr; not written, the disk is full
 *   DEADMAN  the timer ran out; EXITED and EMPTY follow, then the guard ends
 *   EXECED   a = exec, b = pid; descriptor: the terminal's master, if it has one
 *   EXECEND  a = exec, b = wait status, c = CLOCK_REALTIME ns
 *   EXECERR  a = exec, b = errno, text = act; an exec that did not happen
 *   LINGERS  a = living descendants, b = CLOCK_REALTIME ns, c = 0 or GUARD_LEFT_ENDED and a wait status; the main process
 *            has exited with 0 and left them; again when none of them is left. Of what is over before the first of these,
 *            or between the two, the status is that of the first that failed, else of the last; before the first, one
 *            that HUP, INT, KILL, PIPE or TERM has ended, or that says so by 128 and the number, counts after others
 *   DONE     a = request, b = errno or 0. Of ADOPT: c = start of the process in clock ticks after boot, 0 of one that
 *            has ended. Of ENDED: c = its wait status. Of EXECKILL with ETIMEDOUT: c = pid, text = name of a process
 *            that did not die for 5 s
 *
 * Order of one start: START, then ERROR or (STARTED, EXITED, EMPTY).
 *
 * A start with GUARD_FLAG_LINGER may leave a daemon: START, STARTED, LINGERS, then it is held, though nothing be left, and
 * nothing is killed, until
 *   ADOPT    the process gets the signals, and its end is that of the start. It is any living descendant that no living
 *            exec has started, or one of the last GUARD_RING that were reaped since STARTED (EXITED follows at
 *            once); ESRCH for others. Another may be adopted while it lives. A process that is another's child until
 *            its end is reaped by that one: LINGERS follows again, or GUARD_EXIT_UNKNOWN while all is being killed.
 *   FINISH   EXITED with the starter's status 0, EMPTY.
 *   KILL     The same with GUARD_EXIT_STARTER.
 * Errno of both: EBUSY while the main process lives, ECHILD when the start has ended.
 * Order of one exec: EXEC, then EXECERR or (EXECED, EXECEND). It is accepted while the guard waits and while an
 * app runs, and is killed with all else: at the app's end (a start that failed is one), by KILL, with the guard. While
 * one lives that is GUARD_FLAG_AWAITED, the app's end kills nothing. EMPTY comes after its end. What it leaves behind
 * belongs to the app. There are at most GUARD_EXECS living ones.
 */
#ifndef MUSTER_GUARD_H
#define MUSTER_GUARD_H

#include <linux/filter.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define GUARD_VERSION 6

#define GUARD_IN_START 1
#define GUARD_IN_SIGNAL 2
#define GUARD_IN_KILL 3
#define GUARD_IN_FEED 4
#define GUARD_IN_EXEC 5
#define GUARD_IN_EXECSIG 6
#define GUARD_IN_ADOPT 7
#define GUARD_IN_FINISH 8
#define GUARD_IN_SWEEP 9
#define GUARD_IN_EXECKILL 10
#define GUARD_IN_ENDED 11

#define GUARD_OUT_HELLO 64
#define GUARD_OUT_STARTED 65
#define GUARD_OUT_EXITED 66
#define GUARD_OUT_EMPTY 67
#define GUARD_OUT_ERROR 68
#define GUARD_OUT_STUCK 69
#define GUARD_OUT_LOST 70
#define GUARD_OUT_DEADMAN 71
#define GUARD_OUT_EXECED 72
#define GUARD_OUT_EXECEND 73
#define GUARD_OUT_EXECERR 74
#define GUARD_OUT_LINGERS 75
#define GUARD_OUT_DONE 76

/* Bits of EXITED, beside the 32 of the wait status. */
#define GUARD_EXIT_STARTER 32 /* of a starter; what it left is dead or being killed, and no process was adopted */
#define GUARD_EXIT_UNKNOWN 33 /* of an adopted process; its parent got its status */

#define GUARD_LEFT_ENDED 32 /* bit of LINGERS, beside the 32 of a wait status: something that was left is over */

#define GUARD_RING 64

#define GUARD_FD_LIFELINE 3
#define GUARD_FD_SOCKET 4

#define GUARD_TEXT 96
#define GUARD_FDS 6 /* most descriptors of one message; even, so that the control data holds no more */

struct message {
	uint32_t kind;
	uint32_t start;
	int64_t a, b, c;
	char text[GUARD_TEXT]; /* NUL-terminated */
};

/*
 * The payload of START and EXEC. Behind it: nlimits times three u64 (resource, soft, hard), nfilter times a
 * struct sock_filter, ngroups u32 padded to 8 bytes, then NUL-terminated strings: dir, argv..., env....
 *
 * A filter (seccomp(2)) is installed right before execve and brings NO_NEW_PRIVS with it, for a set-user-id
 * program must not run under another's filter. It must permit execve, and write and exit_group for an execve that
 * fails to be reported as such: a child that its filter kills there looks like an app that ran and died of SIGSYS.
 */
#define GUARD_MAGIC 0x327264617567736dULL /* "msguard2" */

#define GUARD_FLAG_USER 1	  /* uid, gid and groups are set */
#define GUARD_FLAG_CAPS 2	  /* caps is all that may be had; a user other than root ends with none */
#define GUARD_FLAG_NO_NEW_PRIVS 4
#define GUARD_FLAG_UMASK 8	  /* umask is set; else it is the guard's */
#define GUARD_FLAG_TERMINAL 16	  /* EXEC: on a terminal of its own */
#define GUARD_FLAG_LINGER 32	  /* START: it may leave a daemon */
#define GUARD_FLAG_AWAITED 64	  /* EXEC: the app's end kills nothing before this has ended */
#define GUARD_FLAG_STDIN 128	  /* START: the agent has sent its stdin */
#define GUARD_FLAG_STDOUT 256	  /* START: the agent has sent its stdout, which is not logged */

#define GUARD_FILTER_MAX 4096 /* BPF_MAXINSNS */

struct config {
	uint64_t magic;
	uint64_t rotate_bytes; /* a log file is renamed at this size; 0: never */
	uint64_t caps;	       /* 1 << CAP_* */
	uint32_t keep;	       /* files of one stream in all, the live one included */
	uint32_t flags;
	uint32_t argc, envc;
	uint32_t nlimits, ngroups;
	uint32_t nfilter;
	uint32_t umask;
	int32_t oom_score_adj, nice;
	uint32_t uid, gid;
};

struct limit {
	uint64_t resource, soft, hard;
};

/* What one start wants, pointing into the mapped payload. */
struct launch {
	const struct config *config;
	const struct limit *limits;
	const struct sock_filter *filter;
	const uint32_t *groups;
	const char *dir;
	char **argv, **env;
	void *map;
	size_t map_size;
};

/* Descriptors of the child, borrowed. */
struct stdio {
	int in; /* -1: the guard's own, /dev/null */
	int out, err;
	int procs;     /* of the cgroup to go to; -1: stay */
	bool terminal; /* in is one and becomes the controlling one */
};

enum act {
	ACT_CHDIR,
	ACT_EXEC,
	ACT_FORK,
	ACT_LIMIT,
	ACT_USER,
	ACT_GROUPS,
	ACT_CGROUP,
	ACT_CAPS,
	ACT_PRIVS,
	ACT_FILTER,
	ACT_TERMINAL,
};

/* Why a start did not happen, as the child writes it to its status pipe. */
struct failure {
	int32_t err;
	int32_t act; /* enum act */
	int32_t detail; /* resource of a limit, number of a capability */
};

/* launch.c */
int launch_read(struct launch *l, int fd); /* 0 or errno */
void launch_free(struct launch *l);
pid_t launch_fork(const struct launch *l, const struct stdio *io, int *status);
void failure_text(const struct failure *f, char *text, size_t size);

/* tree.c */
struct proc {
	pid_t pid, ppid, session;
	uint64_t start;
	int threads;
	bool dying; /* a signal that nothing stops is pending, or it is at its end */
	char state;
	signed char mine; /* a descendant; -1: not known yet */
	bool execs;	  /* and some living exec's, when it is one */
	char name[17];
};

struct tree {
	struct proc *procs;
	size_t count, room;
};

bool proc_read(pid_t pid, struct proc *p);
void tree_walk(struct tree *t);
struct proc *tree_find(struct tree *t, pid_t pid);
size_t tree_left(bool *zombies); /* living descendants that no living exec has started */
int proc_hold(const struct proc *p); /* a pidfd of that very process; -1 and errno */
bool proc_status(int pidfd, int *status); /* how it ended, once its parent has reaped it; false also before Linux 6.15 */
void tree_free(struct tree *t);
bool tree_alive(const struct proc *p);
int tree_signal(const struct proc *p, int sig); /* 0 or errno */
void tree_kill(int pass);

/* pump.c: a thread, so that a disk that hangs never stops the guard. */
#define PUMP_ATTACH 1
#define PUMP_DRAIN 2

struct pump_order {
	int kind;
	int dir, pipes[2]; /* owned by the pump from now on */
	uint32_t keep;
	uint64_t rotate_bytes;
};

#define PUMP_DRAINED 1
#define PUMP_LOST 2

struct pump_report {
	int kind;
	int stream;
	int err;
	uint64_t bytes;
};

bool pump_start(int *orders, int *reports);

/* exec.c */
#define GUARD_EXECS 16 /* living ones */

void exec_start(const struct message *m, const int *fds, bool welcome);
void exec_signal(int64_t id, int sig);
void exec_polls(struct pollfd *p); /* fills GUARD_EXECS */
void exec_ready(const struct pollfd *p);
bool exec_reaped(pid_t pid, int status, int64_t ended_ns); /* it was one */
bool exec_leads(pid_t pid);
pid_t exec_pid(int64_t id); /* 0: it has ended */
bool exec_any(void);
bool exec_awaited(void); /* one lives that the app's end waits for */

/* branch.c */
bool branch_kill(int64_t request, int64_t exec, const char *mark); /* false: too many at a time */
bool branch_killed(pid_t pid); /* it was found in a branch of late, and is reaped now */
void branch_step(void);
uint64_t branch_next(void); /* when the next step is due, as now_ms */

/* main.c */
uint64_t now_ms(void);
pid_t app_pid(void); /* of a main process that is not reaped; 0: none */
void tell(uint32_t kind, int64_t a, int64_t b, int64_t c, const char *text);
void tell_with(uint32_t kind, int64_t a, int64_t b, int64_t c, const char *text, int fd); /* fd is given away; -1: none */

#endif
