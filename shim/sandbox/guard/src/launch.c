/* One start: the payload read, and the child between fork and exec. */
#define _GNU_SOURCE
#include "guard.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum act { ACT_CHDIR, ACT_EXEC, ACT_FORK, ACT_LIMIT, ACT_USER, ACT_GROUPS, ACT_STDIO };

static const char *const acts[] = {"chdir", "exec", "fork", "set limit", "set user", "set groups", "redirect output"};

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
	need = (uint64_t)c->nlimits * 16 + ((uint64_t)c->ngroups * 4 + 7) / 8 * 8;
	if (need > left || c->argc == 0)
		return EPROTO;
	l->config = c;
	l->limits = (const uint64_t *)(c + 1);
	l->groups = (const uint32_t *)(l->limits + 2 * (uint64_t)c->nlimits);
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

static void child(const struct launch *l, int out, int err, int status, pid_t guard)
{
	const struct config *c = l->config;
	uint32_t i;

	prctl(PR_SET_DUMPABLE, 1);
	reset_signals();
	setsid();
	if (dup2(out, 1) < 0 || dup2(err, 2) < 0 || dup3(status, 3, O_CLOEXEC) < 0)
		_exit(126);
	close_from(4);
	write_oom_score(c->oom_score_adj);
	setpriority(PRIO_PROCESS, 0, c->nice);
	for (i = 0; i < c->nlimits; i++) {
		struct rlimit r = {.rlim_cur = l->limits[2 * i + 1], .rlim_max = l->limits[2 * i + 1]};

		if (setrlimit((int)l->limits[2 * i], &r))
			fail(ACT_LIMIT, (int)l->limits[2 * i]);
	}
	set_user(l);
	/* A change of user clears it, so it comes last; the parent may be gone already. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != guard)
		_exit(126);
	if (*l->dir && chdir(l->dir))
		fail(ACT_CHDIR, 0);
	exec_search(l);
	fail(ACT_EXEC, 0);
}

pid_t launch_fork(const struct launch *l, int out, int err, int *status)
{
	pid_t guard = getpid(), pid;
	int p[2];

	if (pipe2(p, O_CLOEXEC | O_NONBLOCK))
		return -1;
	pid = fork();
	if (pid == 0)
		child(l, out, err, p[1], guard);
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
