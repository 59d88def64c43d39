/* Execs: programs beside the app, on the agent's pipes or on a terminal that is made here. */
#define _GNU_SOURCE
#include "guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static struct exec {
	int64_t id;
	pid_t pid;	/* 0: the slot is free */
	int status_fd;	/* -1 once read */
	int master;	/* of its terminal, until it is sent with EXECED; -1: none */
	bool gone;	/* did not happen; to be reaped only */
	bool awaited;
} execs[GUARD_EXECS];

static struct exec *find(int64_t id)
{
	int i;

	for (i = 0; i < GUARD_EXECS; i++)
		if (execs[i].pid && execs[i].id == id)
			return &execs[i];
	return NULL;
}

static struct exec *free_place(void)
{
	struct exec *over = NULL;
	int i;

	for (i = 0; i < GUARD_EXECS; i++) {
		if (execs[i].pid == 0)
			return &execs[i];
		if (execs[i].gone)
			over = &execs[i]; /* no longer used: its zombie is reaped as any */
	}
	return over;
}

static void refuse(int64_t id, int err, const char *act)
{
	tell(GUARD_OUT_EXECERR, id, err, 0, act);
}

/* A pair of the guard's own /dev: in a container that is the container's. 0 or errno. */
static int open_terminal(const struct launch *l, const struct message *m, int *master, int *slave)
{
	struct winsize size = {.ws_row = (unsigned short)m->b, .ws_col = (unsigned short)m->c};
	int unlock = 0, err;
	struct stat st;

	/* O_NONBLOCK: root in the container may have put anything there, and the guard waits for nothing. */
	*master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (*master < 0)
		return errno;
	if (fstat(*master, &st) || !S_ISCHR(st.st_mode) || st.st_rdev != makedev(5, 2)) {
		close(*master);
		return ENOTTY;
	}
	/* TIOCGPTPEER takes no path, which could lead elsewhere. */
	if (ioctl(*master, TIOCSPTLCK, &unlock) || (*slave = ioctl(*master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC)) < 0) {
		err = errno;
		close(*master);
		return err;
	}
	ioctl(*master, TIOCSWINSZ, &size);
	if (l->config->flags & GUARD_FLAG_USER)
		fchown(*slave, l->config->uid, (gid_t)-1); /* as login does; without it only /dev/tty opens */
	return 0;
}

static void launch_exec(const struct message *m, const struct launch *l, struct stdio *io, struct exec *e)
{
	struct exec fresh = {
		.id = m->a, .status_fd = -1, .master = -1, .awaited = l->config->flags & GUARD_FLAG_AWAITED,
	};
	int err;

	if (io->terminal) {
		if ((err = open_terminal(l, m, &fresh.master, &io->in))) {
			refuse(m->a, err, "open terminal");
			return;
		}
		io->out = io->err = io->in;
	}
	fresh.pid = launch_fork(l, io, &fresh.status_fd);
	err = errno;
	if (io->terminal)
		close(io->in);
	if (fresh.pid > 0) {
		*e = fresh;
		return;
	}
	if (io->terminal)
		close(fresh.master);
	refuse(m->a, err, "fork");
}

void exec_start(const struct message *m, const int *fds, bool welcome)
{
	struct stdio io = {.procs = -1};
	struct exec *e = free_place();
	struct launch l;
	int err;

	if (!welcome || !e || find(m->a)) {
		refuse(m->a, welcome ? EAGAIN : EBUSY, "exec");
		return;
	}
	err = fds[0] < 0 ? EBADF : launch_read(&l, fds[0]);
	if (err) {
		refuse(m->a, err, "read exec");
		goto free_launch;
	}
	io.terminal = l.config->flags & GUARD_FLAG_TERMINAL;
	if (io.terminal) {
		io.procs = fds[1];
	} else if (fds[3] < 0) {
		refuse(m->a, EBADF, "read exec");
		goto free_launch;
	} else {
		io.in = fds[1];
		io.out = fds[2];
		io.err = fds[3];
		io.procs = fds[4];
	}
	launch_exec(m, &l, &io, e);
free_launch:
	if (fds[0] >= 0)
		launch_free(&l);
}

static void read_status(struct exec *e)
{
	char text[GUARD_TEXT];
	struct failure f;
	ssize_t n = read(e->status_fd, &f, sizeof f);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	close(e->status_fd);
	e->status_fd = -1;
	if (n == (ssize_t)sizeof f) {
		failure_text(&f, text, sizeof text);
		refuse(e->id, f.err, text);
		if (e->master >= 0)
			close(e->master);
		e->gone = true;
	} else {
		tell_with(GUARD_OUT_EXECED, e->id, e->pid, 0, NULL, e->master);
	}
	e->master = -1;
}

void exec_polls(struct pollfd *p)
{
	int i;

	for (i = 0; i < GUARD_EXECS; i++)
		p[i] = (struct pollfd){.fd = execs[i].pid ? execs[i].status_fd : -1, .events = POLLIN};
}

void exec_ready(const struct pollfd *p)
{
	int i;

	for (i = 0; i < GUARD_EXECS; i++)
		if (p[i].revents && execs[i].pid && execs[i].status_fd == p[i].fd)
			read_status(&execs[i]);
}

void exec_signal(int64_t id, int sig)
{
	struct exec *e = find(id);

	/* While its leader is not reaped the number is its group's own. Before the exec the agent does not know it. */
	if (e && e->status_fd < 0)
		kill(-e->pid, sig);
}

bool exec_leads(pid_t pid)
{
	int i;

	for (i = 0; i < GUARD_EXECS; i++)
		if (execs[i].pid && execs[i].pid == pid)
			return true;
	return false;
}

pid_t exec_pid(int64_t id)
{
	struct exec *e = find(id);

	return e ? e->pid : 0;
}

bool exec_any(void)
{
	int i;

	for (i = 0; i < GUARD_EXECS; i++)
		if (execs[i].pid)
			return true;
	return false;
}

bool exec_awaited(void)
{
	int i;

	for (i = 0; i < GUARD_EXECS; i++)
		if (execs[i].pid && execs[i].awaited)
			return true;
	return false;
}

bool exec_reaped(pid_t pid, int status, int64_t ended_ns)
{
	int i;

	for (i = 0; i < GUARD_EXECS; i++) {
		struct exec *e = &execs[i];

		if (e->pid != pid)
			continue;
		if (e->status_fd >= 0)
			read_status(e); /* it ended before EXECED was sent */
		if (!e->gone)
			tell(GUARD_OUT_EXECEND, e->id, status, ended_ns, NULL);
		e->pid = 0;
		return true;
	}
	return false;
}
