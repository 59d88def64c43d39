/* The guard's loop: one thread that never waits for a disk, a full socket or a process. */
#define _GNU_SOURCE
#include "guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PIPE_SIZE (1 << 20)
#define STUCK_FIRST_MS 5000
#define STUCK_AGAIN_MS 10000
#define STUCK_NAMES 8
#define DRAIN_MS 10000
#define REAP_BATCH 512
#define QUEUE 160
#define QUEUE_RECEIVE (QUEUE * 5 / 8) /* beyond it no order is received: each may have answers, and so may every exec at its end */

enum app_state {
	APP_NONE,    /* nothing of an app exists; START is accepted */
	APP_EXECING, /* forked, the status pipe not read to its end */
	APP_RUNNING,
	APP_HELD,    /* the starter has exited with 0; the agent is to say what follows from what it left */
	APP_GONE, /* the main process is reaped; what it left is being killed, then the logs drained */
};

static struct {
	enum app_state state;
	uint32_t start;
	pid_t pid;
	int status_fd; /* -1 once read */
	bool reaped;   /* pid is free; while EXECING: the end came before the status */
	uint64_t ticks; /* start of the process */
	int wait_status;
	int64_t ended_ns;
	long max_rss;
	struct failure failure; /* err != 0: the start did not happen */
	bool linger;
	bool adopted; /* pid is not of the process that was started */
	bool apart;   /* and was another's child when it was adopted; its end is seen by pidfd, without one by looking */
	int pidfd;    /* -1: none */
	pid_t past;   /* the last that was apart, and is over: its parent has reaped it, or will */
	int pastfd;   /* of that; -1: none */
	bool deserted; /* while HELD: LINGERS has said that nothing is left */
	bool left_ended; /* something that the starter left is over */
	int left_status; /* and ended so: the first that weighs most, else the last */
	int looks; /* at what START has left, while something of it was dying */
} app = {.status_fd = -1, .pidfd = -1, .pastfd = -1};

/* The last to be reaped since the start, newest at at - 1: a daemon may end before the agent has read its number. */
static struct {
	struct ended {
		pid_t pid;
		int status;
		int64_t ns;
		long rss;
	} all[GUARD_RING];
	unsigned at;
} ring;

#define SWEEPS 16
#define LOOK_MS 500 /* at an adopted process, where there is no pidfd */
#define MOST_LOOKS 256
#define FEEDS QUEUE /* messages that are read before the dead-man timer ends everything */

static int64_t sweeps[SWEEPS]; /* requests */
static int swept;

static struct {
	bool on;
	int pass;
	uint64_t since, next, stuck;
} killing;

static struct {
	bool asked, done;
	uint64_t until;
	unsigned ordered, answered; /* over all starts: an answer may come after its time */
} drain;

static bool childless; /* waitpid returned ECHILD: no child, hence no descendant */

static bool ending;     /* lifeline or dead-man: kill, drain, exit */
static bool agent_gone; /* no agent reads */
static bool kill_asked; /* an EMPTY is owed though no app exists */
static uint32_t kill_start;
static int orders, reports, children, deadman;

static struct message queue[QUEUE];
static int queue_fds[QUEUE]; /* given away with the message; -1: none */
static unsigned queued;

uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static int64_t realtime_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- messages out ---- */

static ssize_t send_one(const struct message *m, int fd)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct iovec iov = {(void *)m, sizeof *m};
	struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1};

	if (fd >= 0) {
		h.msg_control = &control;
		h.msg_controllen = sizeof control.room;
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.head), &fd, sizeof fd);
	}
	return sendmsg(GUARD_FD_SOCKET, &h, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void flush(void)
{
	unsigned n = 0;

	for (; n < queued; n++) {
		if (!agent_gone && send_one(&queue[n], queue_fds[n]) < 0) {
			if (errno == EAGAIN || errno == ENOBUFS || errno == ETOOMANYREFS)
				break;
			agent_gone = ending = true;
		}
		if (queue_fds[n] >= 0)
			close(queue_fds[n]);
	}
	queued -= n;
	memmove(queue, queue + n, queued * sizeof *queue);
	memmove(queue_fds, queue_fds + n, queued * sizeof *queue_fds);
}

/* Half of the queue is reserved for answers: the agent causes them, and no order is received when it fills up. */
void tell_with(uint32_t kind, int64_t a, int64_t b, int64_t c, const char *text, int fd)
{
	struct message *m;
	bool chatter = kind == GUARD_OUT_STUCK || kind == GUARD_OUT_LOST;

	if (agent_gone || queued == QUEUE || (chatter && queued >= QUEUE / 2)) {
		if (fd >= 0)
			close(fd);
		return;
	}
	queue_fds[queued] = fd;
	m = &queue[queued++];
	memset(m, 0, sizeof *m);
	m->kind = kind;
	m->start = app.start;
	m->a = a;
	m->b = b;
	m->c = c;
	if (text)
		strncat(m->text, text, sizeof m->text - 1);
	flush();
}

void tell(uint32_t kind, int64_t a, int64_t b, int64_t c, const char *text)
{
	tell_with(kind, a, b, c, text, -1);
}

/* ---- killing ---- */

static void kill_begin(void)
{
	if (killing.on)
		return;
	memset(&killing, 0, sizeof killing);
	killing.on = true;
	killing.since = killing.next = now_ms();
	killing.stuck = killing.since + STUCK_FIRST_MS;
}

static void tell_stuck(void)
{
	struct tree t;
	size_t i;
	int named = 0;

	tree_walk(&t);
	for (i = 0; i < t.count && named < STUCK_NAMES; i++) {
		struct proc *p = &t.procs[i];

		if (p->mine <= 0 || !tree_alive(p))
			continue;
		tell(GUARD_OUT_STUCK, p->pid, tree_signal(p, SIGKILL), p->state, p->name);
		named++;
	}
	tree_free(&t);
}

static void kill_step(void)
{
	uint64_t now = now_ms(), wait;

	if (!killing.on || now < killing.next)
		return;
	tree_kill(killing.pass);
	if (now >= killing.stuck) {
		tell_stuck();
		killing.stuck = now + STUCK_AGAIN_MS;
	}
	wait = killing.pass < 7 ? 1ULL << killing.pass : 100;
	killing.pass++;
	killing.next = now_ms() + wait;
}

/* ---- the app ---- */

pid_t app_pid(void)
{
	return (app.state == APP_EXECING || app.state == APP_RUNNING) && !app.reaped ? app.pid : 0;
}

/* The exec that ends the app may have more to do. */
static void clear_up(void)
{
	if (app.state == APP_GONE && !exec_awaited())
		kill_begin();
}

static void announce_exit(int64_t marks)
{
	tell(GUARD_OUT_EXITED, (int64_t)(uint32_t)app.wait_status | marks, app.ended_ns, app.max_rss, NULL);
	app.state = APP_GONE;
	if (app.pidfd >= 0)
		close(app.pidfd);
	app.pidfd = -1;
	clear_up();
}

/* The end of a start that is held, by a kill. */
static void let_go(void)
{
	if (app.state == APP_HELD)
		announce_exit(1LL << GUARD_EXIT_STARTER);
}

static void tell_lingers(size_t left, int64_t ns)
{
	app.deserted = !left;
	tell(GUARD_OUT_LINGERS, (int64_t)left, ns,
	     app.left_ended ? (int64_t)(uint32_t)app.left_status | 1LL << GUARD_LEFT_ENDED : 0, NULL);
	if (left)
		app.left_ended = false; /* what lives counts from now on */
}

/* A starter that ended with 0 is held, whatever it left. While a zombie hides that, wait for its end and look again. */
static void main_ended(void)
{
	bool zombies = false;
	size_t left;

	if (app.state != APP_RUNNING || !app.reaped)
		return;
	if (!app.linger || app.adopted || app.wait_status || killing.on || ending) {
		announce_exit(0);
		return;
	}
	left = tree_left(&zombies);
	if (zombies && (!left || app.looks++ < MOST_LOOKS)) /* more: processes end all the time */
		return;
	app.state = APP_HELD;
	tell_lingers(left, app.ended_ns);
}

/* What living execs have started is not what the starter left. */
static void look_at_held(void)
{
	bool zombies;

	if (app.state == APP_HELD && !app.deserted && (childless || (exec_any() && tree_left(&zombies) == 0 && !zombies)))
		tell_lingers(0, realtime_ns());
}

static void announce_start(void)
{
	tell(GUARD_OUT_STARTED, app.pid, (int64_t)app.ticks, 0, NULL);
	app.state = APP_RUNNING;
}

static void read_status(void)
{
	struct failure f;
	ssize_t n = read(app.status_fd, &f, sizeof f);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	close(app.status_fd);
	app.status_fd = -1;
	if (n != (ssize_t)sizeof f) {
		announce_start();
		return;
	}
	app.failure = f;
	app.state = APP_GONE;
	kill_begin();
}

static void note_ended(pid_t pid, int status, long rss)
{
	ring.all[ring.at++ % GUARD_RING] = (struct ended){pid, status, realtime_ns(), rss};
}

/* While the starter runs, what another process has ended (it may have been the starter) weighs less than a failure. */
static int weight(int status)
{
	int by = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status) - 128;

	if (!status)
		return 0;
	if (app.state == APP_HELD)
		return 2;
	return by == SIGHUP || by == SIGINT || by == SIGKILL || by == SIGPIPE || by == SIGTERM ? 1 : 2;
}

/* What an exec has left is not told apart, but for what was killed with it. */
static void note_left(pid_t pid, int status)
{
	if (branch_killed(pid))
		return;
	if (!app.left_ended || app.left_status == 0 || weight(status) > weight(app.left_status))
		app.left_status = status;
	app.left_ended = true;
}

static void take_status(const struct ended *e)
{
	app.wait_status = e->status;
	app.ended_ns = e->ns;
	app.max_rss = e->rss;
	app.reaped = true;
}

static void drop_past(void)
{
	if (app.pastfd >= 0)
		close(app.pastfd);
	app.pastfd = -1;
}

/*
 * Before reaping, while its number cannot be another's. A zombie of ours is left for that. When all are being killed so
 * is its parent, and a zombie comes to us.
 */
static void look_at_adopted(void)
{
	struct proc p;
	bool there, zombies;
	size_t left;

	if (!app.apart || app.state != APP_RUNNING || app.reaped)
		return;
	there = proc_read(app.pid, &p) && p.start == app.ticks;
	if (there && (tree_alive(&p) || p.ppid == getpid() || killing.on))
		return;
	if (killing.on || ending) {
		take_status(&(struct ended){.ns = realtime_ns()});
		announce_exit(1LL << GUARD_EXIT_UNKNOWN);
		return;
	}
	left = tree_left(&zombies);
	if (!left && zombies)
		return;
	/* Its parent knows its end, and may put another in its place, or end as it did. */
	drop_past();
	app.past = app.pid;
	app.pastfd = app.pidfd;
	app.pidfd = -1;
	app.reaped = true;
	app.adopted = app.apart = false;
	app.state = APP_HELD;
	tell_lingers(left, realtime_ns());
}

/* True when waitpid proves that no child is left, hence no descendant. */
static bool reap(bool *some)
{
	struct signalfd_siginfo info;
	struct rusage usage;
	int status, i;
	pid_t pid;

	while (read(children, &info, sizeof info) > 0)
		;
	*some = false;
	for (i = 0; i < REAP_BATCH; i++) {
		pid = wait4(-1, &status, WNOHANG | __WALL, &usage);
		if (pid < 0)
			return errno == ECHILD;
		if (pid == 0)
			return false;
		*some = true;
		if (exec_reaped(pid, status, realtime_ns()))
			continue;
		note_ended(pid, status, usage.ru_maxrss);
		if (pid != app.pid || app.reaped) {
			note_left(pid, status);
			continue;
		}
		take_status(&ring.all[(ring.at - 1) % GUARD_RING]);
		if (app.state == APP_EXECING)
			read_status();
	}
	/* A flood: more may wait, and the other descriptors want their turn. */
	kill(getpid(), SIGCHLD);
	return false;
}

static void order_drain(void)
{
	struct pump_order o = {.kind = PUMP_DRAIN};

	if (drain.asked)
		return;
	drain.asked = true;
	drain.ordered++;
	drain.until = now_ms() + DRAIN_MS;
	if (write(orders, &o, sizeof o) != sizeof o)
		drain.until = 0;
}

static void finish(void)
{
	char text[GUARD_TEXT];

	if (app.failure.err) {
		failure_text(&app.failure, text, sizeof text);
		tell(GUARD_OUT_ERROR, app.failure.err, 0, 0, text);
	} else {
		tell(GUARD_OUT_EMPTY, drain.done, 0, 0, NULL);
	}
	app.state = APP_NONE;
	memset(&app.failure, 0, sizeof app.failure);
	killing.on = kill_asked = false;
	drain.asked = false;
}

static void when_childless(void)
{
	if (!childless || app.status_fd >= 0)
		return;
	if (app.state == APP_GONE) {
		order_drain();
		if (drain.done || now_ms() >= drain.until)
			finish();
	} else if (app.state == APP_NONE) {
		if (kill_asked) {
			app.start = kill_start;
			tell(GUARD_OUT_EMPTY, 1, 0, 0, NULL);
			kill_asked = false;
		}
		while (swept)
			tell(GUARD_OUT_DONE, sweeps[--swept], 0, 0, NULL);
		killing.on = false;
	}
}

/* ---- messages in ---- */

static void refuse(uint32_t start, int err, const char *act)
{
	uint32_t running = app.start;

	app.start = start;
	tell(GUARD_OUT_ERROR, err, 0, 0, act);
	app.start = running;
}

static bool make_pipe(int *p)
{
	if (pipe2(p, O_CLOEXEC))
		return false;
	fcntl(p[0], F_SETFL, O_NONBLOCK); /* this end only: the app's end blocks */
	fcntl(p[0], F_SETPIPE_SZ, PIPE_SIZE);
	return true;
}

/* Which of the descriptors of a START is what, by what the payload says of them. False: one is missing. */
static bool start_stdio(const struct launch *l, const int *fds, struct stdio *io)
{
	const int *next = fds + 2;

	*io = (struct stdio){.in = -1, .out = -1, .procs = -1};
	if (l->config->flags & GUARD_FLAG_STDIN && (io->in = *next++) < 0)
		return false;
	if (l->config->flags & GUARD_FLAG_STDOUT && (io->out = *next++) < 0)
		return false;
	io->procs = *next;
	return true;
}

static void start(uint32_t number, const int *fds)
{
	int payload = fds[0], dir = fds[1];
	struct pump_order o = {.kind = PUMP_ATTACH};
	struct launch l;
	struct stdio io;
	int out[2], err[2], e;

	/* Killing with no app: an exec of a waiting guard, and what it left, is still dying. */
	if (app.state != APP_NONE || killing.on || ending) {
		refuse(number, EBUSY, "start");
		return;
	}
	if ((e = launch_read(&l, payload))) {
		refuse(number, e, "read start");
		goto free_launch;
	}
	if (!start_stdio(&l, fds, &io)) {
		refuse(number, EBADF, "read start");
		goto free_launch;
	}
	if (!make_pipe(out)) {
		refuse(number, errno, "make pipe");
		goto free_launch;
	}
	if (!make_pipe(err)) {
		refuse(number, errno, "make pipe");
		close(out[0]);
		close(out[1]);
		goto free_launch;
	}
	o.dir = fcntl(dir, F_DUPFD_CLOEXEC, 5);
	if (o.dir < 0) {
		refuse(number, errno, "keep the log folder");
		goto close_pipes;
	}
	o.pipes[0] = out[0];
	o.pipes[1] = err[0];
	o.keep = l.config->keep;
	app.linger = l.config->flags & GUARD_FLAG_LINGER;
	app.adopted = app.apart = app.deserted = app.left_ended = false;
	app.looks = 0;
	drop_past();
	ring.at = 0;
	o.rotate_bytes = l.config->rotate_bytes;
	if (write(orders, &o, sizeof o) != sizeof o) {
		refuse(number, errno, "order pump");
		close(o.dir);
		goto close_pipes;
	}
	drain.asked = drain.done = false;
	app.start = number;
	app.reaped = false;
	if (io.out < 0)
		io.out = out[1]; /* else the pump finds its end at once */
	io.err = err[1];
	app.pid = launch_fork(&l, &io, &app.status_fd);
	if (app.pid < 0) {
		app.failure = (struct failure){.err = errno, .act = ACT_FORK};
		app.pid = 0;
		app.state = APP_GONE;
		kill_begin();
	} else {
		struct proc p;

		/* Now, for it may end before STARTED is sent. */
		app.ticks = proc_read(app.pid, &p) ? p.start : 0;
		app.state = APP_EXECING;
	}
	close(out[1]);
	close(err[1]);
	goto free_launch;
close_pipes: /* the pump has not got its ends */
	close(out[0]);
	close(out[1]);
	close(err[0]);
	close(err[1]);
free_launch:
	launch_free(&l);
}

/* A moment, not a duration: the agent may have been stopped since it read the clock. */
static void arm(int64_t ns)
{
	struct itimerspec t = {0};

	if (ns > 0) {
		t.it_value.tv_sec = ns / 1000000000;
		t.it_value.tv_nsec = ns % 1000000000;
	}
	timerfd_settime(deadman, TFD_TIMER_ABSTIME, &t, NULL);
}

/* Errno of an order that only a start which lingers can follow. */
static int not_held(const struct message *m, bool adopted)
{
	if (m->start != app.start || app.state == APP_NONE || app.state == APP_GONE)
		return ECHILD;
	if (app.state == APP_HELD || (adopted && app.state == APP_RUNNING && app.adopted && !app.reaped))
		return 0;
	return EBUSY;
}

static const struct ended *find_ended(pid_t pid)
{
	unsigned i;

	for (i = 1; i <= GUARD_RING && i <= ring.at; i++)
		if (ring.all[(ring.at - i) % GUARD_RING].pid == pid)
			return &ring.all[(ring.at - i) % GUARD_RING];
	return NULL;
}

/* The living descendant of that number, in p, and whether it is held by a pidfd, or -1, for it is another's child. */
static int find_living(pid_t pid, struct proc *p, int *pidfd)
{
	struct tree t;
	struct proc *found, again;
	int err = ESRCH;

	*pidfd = -1;
	tree_walk(&t);
	found = tree_find(&t, pid);
	if (found && found->mine > 0 && !found->execs) {
		*p = *found;
		err = 0;
	}
	tree_free(&t);
	if (err || p->ppid == getpid())
		return err;
	*pidfd = proc_hold(p);
	if (*pidfd < 0 && errno != ENOSYS)
		return errno;
	if (proc_read(pid, &again) && again.start == p->start)
		*p = again; /* it may have become ours */
	return 0;
}

static int adopt(const struct message *m, uint64_t *ticks, const struct ended **over)
{
	pid_t pid = (pid_t)m->b;
	int err = not_held(m, true), pidfd;
	struct proc p;

	*over = NULL;
	*ticks = 0;
	if (err)
		return err;
	err = find_living(pid, &p, &pidfd);
	if (err) {
		*over = err == ESRCH ? find_ended(pid) : NULL;
		return *over ? 0 : err;
	}
	if (app.pidfd >= 0)
		close(app.pidfd);
	app.pidfd = pidfd;
	app.pid = pid;
	app.ticks = *ticks = p.start;
	app.apart = p.ppid != getpid();
	app.left_ended = false;
	app.adopted = true;
	app.reaped = false;
	app.state = APP_RUNNING;
	return 0;
}

static void adopt_told(const struct message *m)
{
	const struct ended *over;
	uint64_t ticks;
	int err = adopt(m, &ticks, &over);

	tell(GUARD_OUT_DONE, m->a, err, (int64_t)ticks, NULL);
	if (over) {
		take_status(over);
		app.adopted = true;
		announce_exit(0);
	}
}

static void finish_told(const struct message *m)
{
	int err = not_held(m, false);

	tell(GUARD_OUT_DONE, m->a, err, 0, NULL);
	if (!err)
		announce_exit(0);
}

/* Also when the start is over: the agent asks then how a process ended. */
static void ended_told(const struct message *m)
{
	pid_t pid = (pid_t)m->b;
	const struct ended *e = m->start == app.start ? find_ended(pid) : NULL;
	int status = e ? e->status : 0;
	bool known = e || (m->start == app.start && pid == app.past && app.pastfd >= 0 && proc_status(app.pastfd, &status));

	tell(GUARD_OUT_DONE, m->a, known ? 0 : ESRCH, known ? (int64_t)(uint32_t)status : 0, NULL);
}

static void sweep(const struct message *m)
{
	if (app.state != APP_NONE || swept == SWEEPS) {
		tell(GUARD_OUT_DONE, m->a, app.state == APP_NONE ? EAGAIN : EBUSY, 0, NULL);
		return;
	}
	sweeps[swept++] = m->a;
	kill_begin();
}

/* What a starter left has no main process: each gets it. */
static void signal_held(int sig)
{
	struct tree t;
	size_t i;

	tree_walk(&t);
	for (i = 0; i < t.count; i++)
		if (t.procs[i].mine > 0 && !t.procs[i].execs && tree_alive(&t.procs[i]))
			tree_signal(&t.procs[i], sig);
	tree_free(&t);
}

static void signal_app(int sig)
{
	struct proc p = {.pid = app.pid, .start = app.ticks};

	if (app.state == APP_HELD)
		signal_held(sig);
	if (!app_pid())
		return;
	if (app.apart)
		tree_signal(&p, sig);
	else
		kill(app.pid, sig); /* not reaped yet, so the number is still its own */
}

static void obey(const struct message *m, const int *fds)
{
	switch (m->kind) {
	case GUARD_IN_START:
		if (fds[0] < 0 || fds[1] < 0)
			refuse(m->start, EBADF, "read start");
		else
			start(m->start, fds);
		break;
	case GUARD_IN_SIGNAL:
		/* Sent for an earlier start: ignored. */
		if (m->start == app.start)
			signal_app((int)m->a);
		break;
	case GUARD_IN_KILL:
		if (app.state != APP_NONE && m->start != app.start)
			break; /* sent for an earlier start, which is over */
		kill_asked = app.state == APP_NONE;
		kill_start = m->start;
		kill_begin();
		let_go();
		break;
	case GUARD_IN_FEED:
		arm(m->a);
		break;
	case GUARD_IN_EXEC:
		exec_start(m, fds, app.state != APP_GONE && !killing.on && !ending);
		break;
	case GUARD_IN_EXECSIG:
		exec_signal(m->a, (int)m->b);
		break;
	case GUARD_IN_ADOPT:
		adopt_told(m);
		break;
	case GUARD_IN_ENDED:
		ended_told(m);
		break;
	case GUARD_IN_FINISH:
		finish_told(m);
		break;
	case GUARD_IN_SWEEP:
		sweep(m);
		break;
	case GUARD_IN_EXECKILL:
		if (!branch_kill(m->a, m->b, m->text))
			tell(GUARD_OUT_DONE, m->a, EAGAIN, 0, NULL);
		break;
	}
}

/* False: no message was there. */
static bool receive(void)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(GUARD_FDS * sizeof(int))];
	} control;
	struct message m;
	struct iovec iov = {&m, sizeof m};
	struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
	int fds[GUARD_FDS], i;
	ssize_t n = recvmsg(GUARD_FD_SOCKET, &h, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct cmsghdr *c;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		agent_gone = ending = true;
		return false;
	}
	for (i = 0; i < GUARD_FDS; i++)
		fds[i] = -1;
	c = CMSG_FIRSTHDR(&h);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		memcpy(fds, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
	if (n == (ssize_t)sizeof m) {
		m.text[sizeof m.text - 1] = 0;
		obey(&m, fds);
	}
	for (i = 0; i < GUARD_FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return true;
}

static void read_reports(void)
{
	struct pump_report r;

	while (read(reports, &r, sizeof r) == sizeof r) {
		if (r.kind == PUMP_DRAINED)
			drain.done = ++drain.answered == drain.ordered;
		else
			tell(GUARD_OUT_LOST, (int64_t)r.bytes, r.err, r.stream, NULL);
	}
}

static void read_lifeline(void)
{
	char byte;
	ssize_t n = read(GUARD_FD_LIFELINE, &byte, 1);

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		ending = true;
}

/* A guard that was stopped past its moment may find a later one in its socket: a feed holds whenever it is read. */
static void read_deadman(void)
{
	uint64_t times;
	int i;

	for (i = 0; i < FEEDS && !agent_gone && queued < QUEUE_RECEIVE && receive(); i++)
		;
	if (read(deadman, &times, sizeof times) != sizeof times || ending)
		return;
	tell(GUARD_OUT_DEADMAN, 0, 0, 0, NULL);
	ending = true;
}

static int wait_ms(void)
{
	uint64_t now = now_ms(), until = UINT64_MAX;

	if (killing.on && !childless)
		until = killing.next;
	if (drain.asked && !drain.done && drain.until < until)
		until = drain.until;
	if (branch_next() < until)
		until = branch_next();
	if (app_pid() && app.apart && app.pidfd < 0 && now + LOOK_MS < until)
		until = now + LOOK_MS;
	if (until == UINT64_MAX)
		return -1;
	return until <= now ? 0 : (int)(until - now);
}

/* The end: report at once which processes are stuck already. */
static void kill_last(void)
{
	uint64_t now = now_ms();

	kill_begin();
	let_go();
	if (now - killing.since >= STUCK_FIRST_MS)
		killing.next = killing.stuck = now;
}

static void loop(void)
{
	bool ended = false, some;

	for (;;) {
		struct pollfd p[7 + GUARD_EXECS] = {
			{.fd = agent_gone ? -1 : GUARD_FD_SOCKET, .events = (queued < QUEUE_RECEIVE ? POLLIN : 0) | (queued ? POLLOUT : 0)},
			{.fd = ending ? -1 : GUARD_FD_LIFELINE, .events = POLLIN},
			{.fd = children, .events = POLLIN},
			{.fd = deadman, .events = POLLIN},
			{.fd = reports, .events = POLLIN},
			{.fd = app.status_fd, .events = POLLIN},
			{.fd = killing.on ? -1 : app.pidfd, .events = POLLIN},
		};

		exec_polls(p + 7);
		poll(p, sizeof p / sizeof *p, ending && !ended ? 0 : wait_ms());
		if (p[1].revents)
			read_lifeline();
		if (p[3].revents)
			read_deadman();
		if (p[5].revents && app.status_fd >= 0)
			read_status();
		exec_ready(p + 7);
		if (p[4].revents)
			read_reports();
		if (p[0].revents & ~POLLOUT)
			receive();
		if (queued)
			flush();
		if (ending && !ended)
			kill_last();
		ended = ending;
		look_at_adopted();
		childless = reap(&some);
		main_ended();
		if (some || childless)
			look_at_held();
		if (some)
			clear_up();
		if (!childless)
			kill_step();
		branch_step();
		when_childless();
		if (ending && app.state == APP_NONE && !killing.on)
			return;
	}
}

static bool prepare(void)
{
	sigset_t all, child;

	setsid();
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	signal(SIGCHLD, SIG_DFL); /* ignored, it would reap by itself */
	syscall(SYS_close_range, GUARD_FD_SOCKET + 1, ~0U, 0);
	fcntl(GUARD_FD_LIFELINE, F_SETFD, FD_CLOEXEC);
	fcntl(GUARD_FD_LIFELINE, F_SETFL, O_NONBLOCK);
	fcntl(GUARD_FD_SOCKET, F_SETFD, FD_CLOEXEC);
	prctl(PR_SET_NAME, "muster-guard");
	/* The app may run as the same user: it must not trace the guard. */
	prctl(PR_SET_DUMPABLE, 0);
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) || chdir("/"))
		return false;
	children = signalfd(-1, &child, SFD_NONBLOCK | SFD_CLOEXEC);
	deadman = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
	return children >= 0 && deadman >= 0 && pump_start(&orders, &reports);
}

int main(void)
{
	if (fcntl(GUARD_FD_LIFELINE, F_GETFD) < 0 || fcntl(GUARD_FD_SOCKET, F_GETFD) < 0)
		return 64;
	if (!prepare())
		return 70;
	tell(GUARD_OUT_HELLO, GUARD_VERSION, getpid(), 0, NULL);
	loop();
	return 0;
}
