/*
 * Branches: what one exec has started, found and killed while the app runs. A branch is
 *   - its main process and all below it, whatever sessions they make;
 *   - what is in the session that the main process, while it is not reaped, leads, or in one that such a process leads;
 *   - what has the exec's mark in the environment of its own exec (/proc/<pid>/environ), and all below it,
 * without the app's main process and all below that. A process that has left its parents, its session and its environment
 * is not found, nor one whose environment is not readable: of a program that may not be read, or is set-user-id.
 */
#define _GNU_SOURCE
#include "guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#define GIVE_UP_MS 5000
#define STOP_ROUNDS 64

static struct job {
	int64_t request, exec;
	char mark[GUARD_TEXT];
	uint64_t next, until; /* next 0: the slot is free */
	int pass, empty;
} jobs[GUARD_EXECS];

/* Until when, in seconds, a number is that of a process found in a branch: its end is no end of the app's. */
#define MOST_PIDS (1 << 22) /* PID_MAX_LIMIT of 64-bit kernels; what is not used takes no memory */
static uint32_t killed[MOST_PIDS];

bool branch_killed(pid_t pid)
{
	bool was = pid > 0 && pid < MOST_PIDS && now_ms() / 1000 < killed[pid];

	if (was)
		killed[pid] = 0; /* reaped: the number may be another's */
	return was;
}

static void note_killed(pid_t pid)
{
	if (pid > 0 && pid < MOST_PIDS)
		killed[pid] = (uint32_t)(now_ms() / 1000) + 2 * GIVE_UP_MS / 1000;
}

bool branch_kill(int64_t request, int64_t exec, const char *mark)
{
	int i;

	for (i = 0; i < GUARD_EXECS; i++) {
		struct job *j = &jobs[i];

		if (j->next)
			continue;
		*j = (struct job){.request = request, .exec = exec, .next = now_ms()};
		j->until = j->next + GIVE_UP_MS;
		strncat(j->mark, mark, sizeof j->mark - 1);
		return true;
	}
	return false;
}

/*
 * Without CAP_SYS_PTRACE, as in a container, only a process's own user may. No signal and no tracer of that user reaches
 * us by the user that we have for files (kill(2), ptrace(2)).
 */
static int open_environ(pid_t pid)
{
	char path[32];
	struct stat st;
	int fd;

	snprintf(path, sizeof path, "/proc/%d/environ", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 || errno != EACCES || stat(path, &st))
		return fd;
	setfsgid(st.st_gid);
	setfsuid(st.st_uid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	setfsuid(geteuid());
	setfsgid(getegid());
	return fd;
}

/* The mark is too long and too random to occur in another text. */
static bool carries(pid_t pid, const char *mark)
{
	static char text[65536];
	size_t kept = 0, size = strlen(mark);
	ssize_t n;
	bool found = false;
	int fd;

	if (!size)
		return false;
	fd = open_environ(pid);
	if (fd < 0)
		return false;
	while (!found && (n = read(fd, text + kept, sizeof text - kept)) > 0) {
		size_t have = kept + (size_t)n;

		found = memmem(text, have, mark, size);
		kept = have < size - 1 ? have : size - 1;
		memmove(text, text + have - kept, kept);
	}
	close(fd);
	return found;
}

static bool under(struct tree *t, const struct proc *p, pid_t pid)
{
	size_t steps;

	for (steps = 0; p && p->mine > 0 && steps <= t->count; steps++) {
		if (p->pid == pid)
			return true;
		p = tree_find(t, p->ppid);
	}
	return false;
}

static bool descends(struct tree *t, const struct proc *p, const struct job *j, pid_t leader)
{
	size_t steps;

	for (steps = 0; p && p->mine > 0 && steps <= t->count; steps++) {
		if ((leader && (p->pid == leader || p->session == leader)) || carries(p->pid, j->mark))
			return true;
		p = tree_find(t, p->ppid);
	}
	return false;
}

/* A zombie may belong too: its parent is to be killed, and who is left with it is us. */
static bool belongs(struct tree *t, const struct proc *p, const struct job *j, pid_t leader)
{
	pid_t app = app_pid();

	if (p->mine <= 0 || (app && under(t, p, app)))
		return false;
	return descends(t, p, j, leader) || descends(t, tree_find(t, p->session), j, leader);
}

/* Leaves the processes of the branch in t, stopped where that is possible, so that no kill warns another. */
static size_t stop(struct tree *t, const struct job *j, pid_t leader)
{
	size_t fresh, i, n;
	int round;

	for (round = 0;; round++) {
		tree_walk(t);
		for (i = n = fresh = 0; i < t->count; i++)
			t->procs[i].execs = belongs(t, &t->procs[i], j, leader);
		for (i = 0; i < t->count; i++) {
			struct proc *p = &t->procs[i];

			if (!p->execs)
				continue;
			note_killed(p->pid);
			p->execs = tree_alive(p);
			if (!p->execs)
				continue;
			n++;
			if (p->state != 'T' && p->state != 't' && p->state != 'D' && tree_signal(p, SIGSTOP) == 0)
				fresh++;
		}
		if (!fresh || round == STOP_ROUNDS)
			return n;
		tree_free(t);
	}
}

static void done(struct job *j, int err, int64_t pid, const char *name)
{
	tell(GUARD_OUT_DONE, j->request, err, pid, name);
	j->next = 0;
}

static void step(struct job *j)
{
	pid_t leader = exec_pid(j->exec);
	const struct proc *left = NULL;
	struct tree t;
	size_t i, n;

	n = stop(&t, j, leader);
	for (i = 0; i < t.count; i++) {
		if (!t.procs[i].execs)
			continue;
		left = &t.procs[i];
		tree_signal(left, SIGKILL);
	}
	/* Twice: a process may be forked during a walk without being seen. */
	j->empty = n || leader ? 0 : j->empty + 1;
	if (j->empty == 2)
		done(j, 0, 0, NULL);
	else if (left && now_ms() >= j->until)
		done(j, ETIMEDOUT, left->pid, left->name);
	else
		j->next = now_ms() + (j->pass < 6 ? 1ULL << j->pass : 64);
	j->pass++;
	tree_free(&t);
}

void branch_step(void)
{
	int i;

	for (i = 0; i < GUARD_EXECS; i++)
		if (jobs[i].next && now_ms() >= jobs[i].next)
			step(&jobs[i]);
}

uint64_t branch_next(void)
{
	uint64_t next = UINT64_MAX;
	int i;

	for (i = 0; i < GUARD_EXECS; i++)
		if (jobs[i].next && jobs[i].next < next)
			next = jobs[i].next;
	return next;
}
