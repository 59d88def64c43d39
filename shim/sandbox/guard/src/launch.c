/* One start: the payload read, and the child between fork and exec. */
#define _GNU_SOURCE
#include "guard.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *const acts[] = {
	[ACT_CHDIR] = "chdir",	       [ACT_EXEC] = "exec",	   [ACT_FORK] = "fork",
	[ACT_LIMIT] = "set limit",     [ACT_USER] = "set user",	   [ACT_GROUPS] = "set groups",
	[ACT_CGROUP] = "join cgroup",  [ACT_CAPS] = "drop capabilities",
	[ACT_PRIVS] = "set no_new_privs", [ACT_FILTER] = "install seccomp filter",
	[ACT_TERMINAL] = "take terminal",
};

/* In the order of RLIMIT_*: asm-generic/resource.h, which amd64 and arm64 share. */
static const char *const limits[] = {"cpu",    "fsize",  "data",  "stack",      "core",     "rss",  "nproc",  "nofile",
				     "memlock", "as",     "locks", "sigpending", "msgqueue", "nice", "rtprio", "rttime"};

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static const char *next_string(const char **at, const char *end)
{
	const char *s = *at, *nul = memchr(s, 0, (size_t)(end - s));

	if (!nul)
		return NULL;
	*at = nul + 1;
	return s;
}

static int parse(struct launch *l)
{
	const struct config *c = l->map;
	const char *end = (const char *)l->map + l->map_size;
	uint64_t left = l->map_size, need;
	const char *at;
	uint32_t i;

	if (left < sizeof *c || c->magic != GUARD_MAGIC)
		return EPROTO;
	left -= sizeof *c;
	need = (uint64_t)c->nlimits * sizeof *l->limits + (uint64_t)c->nfilter * sizeof *l->filter +
	       ((uint64_t)c->ngroups * 4 + 7) / 8 * 8;
	if (need > left || c->argc == 0 || c->nfilter > GUARD_FILTER_MAX)
		return EPROTO;
	l->config = c;
	l->limits = (const struct limit *)(c + 1);
	l->filter = (const struct sock_filter *)(l->limits + c->nlimits);
	l->groups = (const uint32_t *)(l->filter + c->nfilter);
	at = (const char *)(c + 1) + need;
	if ((uint64_t)c->argc + c->envc + 1 > (uint64_t)(end - at))
		return EPROTO;
	l->argv = calloc((size_t)c->argc + c->envc + 2, sizeof *l->argv);
	if (!l->argv)
		return ENOMEM;
	l->env = l->argv + c->argc + 1;
	if (!(l->dir = next_string(&at, end)))
		return EPROTO;
	for (i = 0; i < c->argc; i++)
		if (!(l->argv[i] = (char *)next_string(&at, end)))
			return EPROTO;
	for (i = 0; i < c->envc; i++)
		if (!(l->env[i] = (char *)next_string(&at, end)))
			return EPROTO;
	return 0;
}

int launch_read(struct launch *l, int fd)
{
	struct stat st;
	int err;

	memset(l, 0, sizeof *l);
	/* Unsealed, the file could shrink under the mapping. */
	if ((fcntl(fd, F_GET_SEALS) & SEALS) != SEALS)
		return EPROTO;
	if (fstat(fd, &st) || st.st_size == 0)
		return EPROTO;
	l->map_size = (size_t)st.st_size;
	l->map = mmap(NULL, l->map_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (l->map == MAP_FAILED) {
		err = errno;
		l->map = NULL;
		return err;
	}
	return parse(l);
}

void launch_free(struct launch *l)
{
	free(l->argv);
	if (l->map)
		munmap(l->map, l->map_size);
	memset(l, 0, sizeof *l);
}

/* ---- the child: system calls only, for the parent has a second thread ---- */

static void fail(int act, int detail)
{
	struct failure f = {.err = errno, .act = act, .detail = detail};

	if (write(3, &f, sizeof f) < 0)
		_exit(126);
	_exit(127);
}

static void reset_signals(void)
{
	struct {
		void *handler;
		unsigned long flags;
		void *restorer;
		uint64_t mask;
	} dfl = {0};
	uint64_t none = 0;
	int sig;

	/* By system call: the wrappers refuse the two signals that the C library keeps for itself. */
	for (sig = 1; sig <= 64; sig++)
		syscall(SYS_rt_sigaction, sig, &dfl, NULL, 8);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, 8);
}

static void write_oom_score(int adj)
{
	char text[12], *p = text + sizeof text;
	unsigned v = adj < 0 ? -(unsigned)adj : (unsigned)adj;
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	do
		*--p = (char)('0' + v % 10);
	while (v /= 10);
	if (adj < 0)
		*--p = '-';
	/* Lowering needs a capability; without it the launcher's value stays. */
	if (write(fd, p, (size_t)(text + sizeof text - p)) < 0)
		errno = 0;
	close(fd);
}

/* Closes all from fd on: an open descriptor of ours must be reachable by no path of the job. */
static void close_from(unsigned fd)
{
	struct rlimit r;
	rlim_t i;

	if (syscall(SYS_close_range, fd, ~0U, 0) == 0)
		return;
	if (getrlimit(RLIMIT_NOFILE, &r) || r.rlim_cur > 1 << 20)
		r.rlim_cur = 1 << 20;
	for (i = fd; i < r.rlim_cur; i++)
		close((int)i);
}

static void set_user(const struct launch *l)
{
	const struct config *c = l->config;

	if (!(c->flags & GUARD_FLAG_USER))
		return;
	if (syscall(SYS_setgroups, c->ngroups, l->groups))
		fail(ACT_GROUPS, 0);
	if (syscall(SYS_setresgid, c->gid, c->gid, c->gid) || syscall(SYS_setresuid, c->uid, c->uid, c->uid))
		fail(ACT_USER, 0);
}

static const char *search_path(char **env)
{
	for (; *env; env++)
		if (!strncmp(*env, "PATH=", 5))
			return *env + 5;
	return "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
}

/* Returns only when it cannot be done, with errno set; a name without a slash is looked up as execvp(3) does. */
static void exec_search(const struct launch *l)
{
	const char *name = l->argv[0], *path, *end;
	size_t n = strlen(name), dir;
	char full[PATH_MAX];
	int err = ENOENT;

	if (strchr(name, '/') || n == 0) {
		execve(name, l->argv, l->env);
		return;
	}
	for (path = search_path(l->env);; path = end + 1) {
		end = strchrnul(path, ':');
		dir = (size_t)(end - path);
		if (dir + n + 2 <= sizeof full) {
			memcpy(full, path, dir);
			if (dir)
				full[dir++] = '/';
			memcpy(full + dir, name, n + 1);
			execve(full, l->argv, l->env);
			if (errno != ENOENT && errno != ENOTDIR && err == ENOENT)
				err = errno;
			if (errno != ENOENT && errno != ENOTDIR && errno != EACCES)
				break;
		}
		if (!*end)
			break;
	}
	errno = err;
}

static void set_limits(const struct launch *l)
{
	uint32_t i;

	for (i = 0; i < l->config->nlimits; i++) {
		const struct limit *want = &l->limits[i];
		struct rlimit r = {.rlim_cur = want->soft, .rlim_max = want->hard};

		if (setrlimit((int)want->resource, &r))
			fail(ACT_LIMIT, (int)want->resource);
	}
}

/*
 * What a set-user-id program, or root at its exec, could get back. Before the change of user, for it takes
 * CAP_SETPCAP. A process that is not root and may not drop has none to drop.
 */
static void bound_caps(const struct launch *l)
{
	int cap;

	if (!(l->config->flags & GUARD_FLAG_CAPS))
		return;
	for (cap = 0; cap < 64; cap++) {
		if (l->config->caps >> cap & 1 || prctl(PR_CAPBSET_READ, cap) != 1)
			continue;
		if (prctl(PR_CAPBSET_DROP, cap) && geteuid() == 0)
			fail(ACT_CAPS, cap);
	}
}

/* Capabilities of the process itself: root keeps what it is given, others have none. None is inherited. */
static void keep_caps(const struct launch *l)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];
	int i;

	if (!(l->config->flags & GUARD_FLAG_CAPS))
		return;
	/* EINVAL: older than Linux 4.3, which has none. */
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) && errno != EINVAL)
		fail(ACT_CAPS, 0);
	if (syscall(SYS_capget, &head, data))
		fail(ACT_CAPS, 0);
	for (i = 0; i < 2; i++) {
		uint32_t mask = geteuid() == 0 ? (uint32_t)(l->config->caps >> (32 * i)) : 0;

		data[i].permitted &= mask;
		data[i].effective = data[i].permitted;
		data[i].inheritable = 0;
	}
	if (syscall(SYS_capset, &head, data))
		fail(ACT_CAPS, 0);
}

static void install_filter(const struct launch *l)
{
	const struct config *c = l->config;
	struct sock_fprog prog = {.len = (unsigned short)c->nfilter, .filter = (struct sock_filter *)l->filter};

	if ((c->flags & GUARD_FLAG_NO_NEW_PRIVS || c->nfilter) && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		fail(ACT_PRIVS, 0);
	if (c->nfilter && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		fail(ACT_FILTER, 0);
}

static void child(const struct launch *l, const struct stdio *io, int status, pid_t guard)
{
	const struct config *c = l->config;

	/* First, so that all it uses is counted there. Its failure is reported below, when the status pipe is 3. */
	int joined = io->procs < 0 || write(io->procs, "0", 1) == 1 ? 0 : errno;

	reset_signals();
	setsid();
	if ((io->in >= 0 && dup2(io->in, 0) < 0) || dup2(io->out, 1) < 0 || dup2(io->err, 2) < 0 || dup3(status, 3, O_CLOEXEC) < 0)
		_exit(126);
	close_from(4);
	/* Not before: while it holds the guard's descriptors no process may look into it. For a plain user's files in /proc. */
	prctl(PR_SET_DUMPABLE, 1);
	if ((errno = joined))
		fail(ACT_CGROUP, 0);
	if (io->terminal && ioctl(0, TIOCSCTTY, 0))
		fail(ACT_TERMINAL, 0);
	write_oom_score(c->oom_score_adj);
	setpriority(PRIO_PROCESS, 0, c->nice);
	set_limits(l);
	if (c->flags & GUARD_FLAG_UMASK)
		umask((mode_t)c->umask);
	bound_caps(l);
	set_user(l);
	keep_caps(l);
	/* A change of user clears it, so it comes last; the parent may be gone already. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != guard)
		_exit(126);
	if (*l->dir && chdir(l->dir))
		fail(ACT_CHDIR, 0);
	install_filter(l);
	exec_search(l);
	fail(ACT_EXEC, 0);
}

/* Errno is set when it is -1. */
pid_t launch_fork(const struct launch *l, const struct stdio *io, int *status)
{
	pid_t guard = getpid(), pid;
	int p[2];

	if (pipe2(p, O_CLOEXEC | O_NONBLOCK))
		return -1;
	pid = fork();
	if (pid == 0)
		child(l, io, p[1], guard);
	close(p[1]);
	if (pid < 0) {
		int e = errno;

		close(p[0]);
		errno = e;
		return -1;
	}
	*status = p[0];
	return pid;
}

void failure_text(const struct failure *f, char *text, size_t size)
{
	size_t act = (size_t)f->act, limit = (size_t)f->detail;

	text[0] = 0;
	if (act >= sizeof acts / sizeof *acts)
		return;
	strncat(text, acts[act], size - 1);
	if (act == ACT_LIMIT && limit < sizeof limits / sizeof *limits) {
		strncat(text, " ", size - strlen(text) - 1);
		strncat(text, limits[limit], size - strlen(text) - 1);
	}
}
