/*
 * The guard's descendants, by a walk of /proc. Being their subreaper it is an ancestor of all of them for
 * ever, whatever sessions and groups they make. That none is left is not read here: waitpid says ECHILD.
 */
#define _GNU_SOURCE
#include "guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FLAG_EXITING 4 /* PF_EXITING: the thread is past its last instruction */

struct linux_dirent64 {
	uint64_t ino;
	int64_t off;
	unsigned short reclen;
	unsigned char type;
	char name[];
};

static char *put_pid(char *at, pid_t pid)
{
	char digits[12];
	int n = 0;

	do
		digits[n++] = (char)('0' + pid % 10);
	while (pid /= 10);
	while (n)
		*at++ = digits[--n];
	return at;
}

/* proc(5): the name is in parentheses and may hold any byte, so the last ')' ends it. */
static bool parse_stat(char *text, size_t size, struct proc *p)
{
	char *open = memchr(text, '(', size), *close = memrchr(text, ')', size), *at;
	size_t name;
	bool exiting = false;
	int field;

	if (!open || !close || close + 4 > text + size)
		return false;
	name = (size_t)(close - open - 1);
	if (name >= sizeof p->name)
		name = sizeof p->name - 1;
	memcpy(p->name, open + 1, name);
	p->name[name] = 0;
	p->state = close[2];
	p->ppid = (pid_t)strtol(close + 4, &at, 10);
	/*
	 * at is behind field 4; the 9th are flags, the 20th counts threads, the 22nd is the start, the 31st what is pending:
	 * KILL too when another signal is to end all threads.
	 */
	for (field = 5; field <= 31 && *at; field++) {
		unsigned long long v = strtoull(at, &at, 10);

		if (field == 6)
			p->session = (pid_t)v;
		if (field == 20)
			p->threads = (int)v;
		if (field == 9)
			exiting = v & FLAG_EXITING;
		if (field == 22)
			p->start = v;
		if (field == 31) {
			p->dying = (exiting && p->threads == 1) || v >> (SIGKILL - 1) & 1;
			return true;
		}
		/* signed fields: strtoull takes a leading minus */
	}
	return false;
}

bool proc_read(pid_t pid, struct proc *p)
{
	char path[32] = "/proc/", text[1024];
	ssize_t n;
	int fd;

	memcpy(put_pid(path + 6, pid), "/stat", 6);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof text - 1);
	close(fd);
	if (n <= 0)
		return false;
	text[n] = 0;
	p->pid = pid;
	p->mine = -1;
	p->execs = false;
	return parse_stat(text, (size_t)n, p);
}

static bool tree_grow(struct tree *t)
{
	size_t room = t->room ? t->room * 2 : 1024;
	void *m;

	if (!t->procs)
		m = mmap(NULL, room * sizeof *t->procs, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	else
		m = mremap(t->procs, t->room * sizeof *t->procs, room * sizeof *t->procs, MREMAP_MAYMOVE);
	if (m == MAP_FAILED)
		return false;
	t->procs = m;
	t->room = room;
	return true;
}

static void read_all(struct tree *t)
{
	static char buffer[8192] __attribute__((aligned(8)));
	int dir = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	long n, at;

	if (dir < 0)
		return;
	while ((n = syscall(SYS_getdents64, dir, buffer, sizeof buffer)) > 0) {
		for (at = 0; at < n;) {
			struct linux_dirent64 *d = (void *)(buffer + at);

			at += d->reclen;
			if (d->name[0] < '1' || d->name[0] > '9')
				continue;
			if (t->count == t->room && !tree_grow(t))
				goto out;
			if (proc_read((pid_t)strtol(d->name, NULL, 10), &t->procs[t->count]))
				t->count++;
		}
	}
out:
	close(dir);
}

/* procfs lists in rising order of pid. */
struct proc *tree_find(struct tree *t, pid_t pid)
{
	size_t lo = 0, hi = t->count;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (t->procs[mid].pid == pid)
			return &t->procs[mid];
		if (t->procs[mid].pid < pid)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

static void mark(struct tree *t, struct proc *p, pid_t self)
{
	struct proc *q = p, *up;
	signed char mine = 0;
	bool execs = false;
	size_t steps = 0;

	for (; q->mine < 0 && steps <= t->count; steps++) {
		if (q->ppid == self) {
			mine = 1;
			execs = exec_leads(q->pid);
			break;
		}
		if (q->ppid == 0 || !(up = tree_find(t, q->ppid)))
			break;
		q = up;
	}
	if (q->mine >= 0) {
		mine = q->mine;
		execs = q->execs;
	}
	for (q = p; q && q->mine < 0; q = tree_find(t, q->ppid)) {
		q->mine = mine;
		q->execs = execs;
	}
}

void tree_walk(struct tree *t)
{
	pid_t self = getpid();
	struct proc *p;
	size_t i;

	memset(t, 0, sizeof *t);
	read_all(t);
	if ((p = tree_find(t, self)))
		p->mine = 0;
	for (i = 0; i < t->count; i++)
		if (t->procs[i].mine < 0)
			mark(t, &t->procs[i], self);
}

void tree_free(struct tree *t)
{
	if (t->procs)
		munmap(t->procs, t->room * sizeof *t->procs);
	memset(t, 0, sizeof *t);
}

/* A process whose first thread has ended is a zombie with threads. */
bool tree_alive(const struct proc *p)
{
	return (p->state != 'Z' && p->state != 'X') || p->threads > 1;
}

/* A number may be given to another process between the walk and now: open it, then look again. */
int proc_hold(const struct proc *p)
{
	struct proc again;
	int fd = (int)syscall(SYS_pidfd_open, p->pid, 0);

	if (fd < 0)
		return -1;
	if (proc_read(p->pid, &again) && again.start == p->start)
		return fd;
	close(fd);
	errno = ESRCH;
	return -1;
}

/* linux/pidfd.h of 6.15; Debian 12 has an earlier one. */
struct pidfd_info {
	uint64_t mask, cgroup;
	uint32_t ids[11];
	int32_t status;
};
#define PIDFD_GET_INFO _IOWR(0xFF, 11, struct pidfd_info)
#define PIDFD_INFO_EXIT 8

bool proc_status(int pidfd, int *status)
{
	struct pidfd_info info = {.mask = PIDFD_INFO_EXIT};

	if (ioctl(pidfd, PIDFD_GET_INFO, &info) || !(info.mask & PIDFD_INFO_EXIT))
		return false;
	*status = info.status;
	return true;
}

int tree_signal(const struct proc *p, int sig)
{
	int fd = proc_hold(p), err = 0;

	if (fd < 0 && errno == ENOSYS)
		return kill(p->pid, sig) ? errno : 0;
	if (fd < 0)
		return errno;
	if (syscall(SYS_pidfd_send_signal, fd, sig, NULL, 0))
		err = errno;
	close(fd);
	return err;
}

/*
 * A child of ours that is dying is a zombie before long. None, and no zombie among our children, is a proof: what lives
 * has an ancestor among them, and while we read none of these is reaped.
 */
size_t tree_left(bool *zombies)
{
	pid_t self = getpid();
	struct tree t;
	size_t i, left = 0;

	*zombies = false;
	tree_walk(&t);
	for (i = 0; i < t.count; i++) {
		struct proc *p = &t.procs[i];

		if (p->mine <= 0 || p->execs)
			continue;
		if (p->ppid == self && (!tree_alive(p) || p->dying))
			*zombies = true;
		else if (tree_alive(p))
			left++;
	}
	tree_free(&t);
	return left;
}

static size_t stop_all(struct tree *t)
{
	size_t i, fresh = 0;

	for (i = 0; i < t->count; i++) {
		struct proc *p = &t->procs[i];

		if (p->mine <= 0 || !tree_alive(p) || p->state == 'T' || p->state == 't' || p->state == 'D')
			continue;
		if (tree_signal(p, SIGSTOP) == 0)
			fresh++;
	}
	return fresh;
}

/* One pass. Processes that multiply faster than they die are stopped first, until a walk finds no new one. */
void tree_kill(int pass)
{
	struct tree t;
	size_t i;
	int round;

	if (getpid() == 1) {
		kill(-1, SIGKILL);
		return;
	}
	tree_walk(&t);
	for (round = 0; pass >= 3 && round < 64 && stop_all(&t); round++) {
		tree_free(&t);
		tree_walk(&t);
	}
	for (i = 0; i < t.count; i++)
		if (t.procs[i].mine > 0 && tree_alive(&t.procs[i]))
			tree_signal(&t.procs[i], SIGKILL);
	tree_free(&t);
}
