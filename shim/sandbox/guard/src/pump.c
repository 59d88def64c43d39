/*
 * The log pump: moves bytes from the two pipes to their files, in a thread of its own. It never makes the app
 * wait for anything but the disk: what cannot be written is read, dropped, counted and reported.
 */
#define _GNU_SOURCE
#include "guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK (1U << 20)
#define RETRY_MS 1000

struct stream {
	const char *name;
	int number; /* 1 stdout, 2 stderr */
	int dir, pipe, file;
	uint64_t size, limit;
	uint64_t rotate_bytes;
	uint32_t keep;
	bool copy;          /* splice is refused here */
	uint64_t opened_ms; /* of the last attempt */
	uint64_t lost, told_ms;
	int err;
};

static struct stream streams[2] = {
	{.name = "stdout.log", .number = 1, .pipe = -1, .file = -1, .dir = -1},
	{.name = "stderr.log", .number = 2, .pipe = -1, .file = -1, .dir = -1},
};
static int order_fd, report_fd;
static char buffer[65536];

static void numbered(const struct stream *s, uint32_t n, char *path)
{
	char digits[12];
	int i = 0;

	path += strlen(strcpy(path, s->name));
	if (n == 0)
		return;
	*path++ = '.';
	do
		digits[i++] = (char)('0' + n % 10);
	while (n /= 10);
	while (i)
		*path++ = digits[--i];
	*path = 0;
}

/*
 * The process owns the folder, and what stands there may be somebody else's file, which this process could write to: a
 * link to it has two names, and one that was moved here belongs to neither of the two who make logs.
 */
static int refusal(const struct stream *s, struct stat *st)
{
	struct stat folder;

	if (fstat(s->file, st) || fstat(s->dir, &folder))
		return errno;
	if (!S_ISREG(st->st_mode))
		return EINVAL;
	if (st->st_nlink > 1)
		return EMLINK;
	if (st->st_uid != geteuid() && st->st_uid != folder.st_uid)
		return EPERM;
	return 0;
}

static void open_file(struct stream *s)
{
	const int how = O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	struct stat st, folder;
	bool made;

	s->opened_ms = now_ms();
	/* Not O_APPEND: splice refuses it. No other process writes here; seek_end follows a truncation. */
	s->file = openat(s->dir, s->name, how | O_EXCL, 0644);
	made = s->file >= 0;
	if (!made && errno == EEXIST)
		s->file = openat(s->dir, s->name, how, 0644);
	if (s->file < 0) {
		s->err = errno;
		return;
	}
	s->err = refusal(s, &st);
	if (s->err) {
		close(s->file);
		s->file = -1;
		return;
	}
	/* The guard of a later start, which may have other ids, writes to what is the folder's owner's. */
	if (made && !fstat(s->dir, &folder))
		fchown(s->file, folder.st_uid, folder.st_gid); /* Only root may; else the guard has the owner's ids. */
	fchmod(s->file, 0644); /* Whatever the umask: the agent reads what the folder's owner may read. */
	s->size = (uint64_t)st.st_size;
	s->limit = s->rotate_bytes;
}

static void rotate(struct stream *s)
{
	char from[48], to[48];
	uint32_t i;

	for (i = s->keep > 1 ? s->keep - 1 : 1; i > 0; i--) {
		numbered(s, i - 1, from);
		numbered(s, i, to);
		if (renameat(s->dir, from, s->dir, to) && errno != ENOENT) {
			/* Better one file too long than bytes lost. */
			s->limit += s->rotate_bytes;
			return;
		}
	}
	if (s->keep <= 1) {
		numbered(s, 1, to);
		unlinkat(s->dir, to, 0);
	}
	close(s->file);
	open_file(s);
}

static void report_lost(struct stream *s, bool now)
{
	struct pump_report r = {.kind = PUMP_LOST, .stream = s->number, .err = s->err, .bytes = s->lost};
	uint64_t t = now_ms();

	if (!s->lost || (!now && s->told_ms && t - s->told_ms < RETRY_MS))
		return;
	if (write(report_fd, &r, sizeof r) == sizeof r) {
		s->lost = 0;
		s->told_ms = t;
	}
}

static void lose(struct stream *s, size_t n, int err)
{
	s->err = err;
	s->lost += n;
	report_lost(s, false);
}

/* Reads and writes; what the file does not take is dropped. Returns as read(2) does. */
static ssize_t copy_some(struct stream *s, size_t most)
{
	ssize_t n = read(s->pipe, buffer, most < sizeof buffer ? most : sizeof buffer), done = 0, w;

	while (n > 0 && done < n) {
		w = s->file < 0 ? -1 : write(s->file, buffer + done, (size_t)(n - done));
		if (w <= 0) {
			lose(s, (size_t)(n - done), s->file < 0 ? s->err : errno);
			break;
		}
		done += w;
		s->size += (uint64_t)w;
	}
	return n;
}

/* Returns as read(2) does: 0 at the end, -1 with EAGAIN when the pipe is empty. */
static ssize_t move_some(struct stream *s)
{
	size_t most = CHUNK;
	ssize_t n;
	off_t end;

	if (s->file < 0 && now_ms() - s->opened_ms >= RETRY_MS)
		open_file(s);
	if (s->file >= 0 && s->limit && s->size >= s->limit)
		rotate(s);
	if (s->file < 0)
		return copy_some(s, most);
	end = lseek(s->file, 0, SEEK_END);
	if (end >= 0)
		s->size = (uint64_t)end;
	if (s->limit && s->limit > s->size && s->limit - s->size < most)
		most = (size_t)(s->limit - s->size);
	if (s->copy)
		return copy_some(s, most);
	n = splice(s->pipe, NULL, s->file, NULL, most, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	if (n > 0)
		s->size += (uint64_t)n;
	if (n >= 0 || errno == EAGAIN)
		return n;
	s->copy = errno == EINVAL || errno == ENOSYS || errno == EPERM;
	return copy_some(s, most);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Up to rounds chunks, so that one stream does not starve the other. */
static void serve(struct stream *s, int rounds)
{
	ssize_t n = 1;

	while (s->pipe >= 0 && rounds-- != 0) {
		n = move_some(s);
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
			close_fd(&s->pipe);
			return;
		}
		if (n < 0)
			return;
	}
}

static void attach(const struct pump_order *o)
{
	int i;

	for (i = 0; i < 2; i++) {
		struct stream *s = &streams[i];

		close_fd(&s->pipe);
		s->dir = i == 0 ? o->dir : fcntl(o->dir, F_DUPFD_CLOEXEC, 0);
		s->pipe = o->pipes[i];
		s->rotate_bytes = o->rotate_bytes;
		s->keep = o->keep;
		s->copy = false;
		s->lost = s->told_ms = 0;
		open_file(s);
	}
}

/* No writer is left: the pipes hold all there will be. */
static void drain(void)
{
	struct pump_report done = {.kind = PUMP_DRAINED};
	int i;

	for (i = 0; i < 2; i++) {
		struct stream *s = &streams[i];

		serve(s, -1);
		report_lost(s, true);
		close_fd(&s->pipe);
		close_fd(&s->file);
		close_fd(&s->dir);
	}
	while (write(report_fd, &done, sizeof done) < 0 && errno == EAGAIN) {
		struct pollfd p = {.fd = report_fd, .events = POLLOUT};

		poll(&p, 1, -1);
	}
}

static void obey(void)
{
	struct pump_order o;

	if (read(order_fd, &o, sizeof o) != sizeof o)
		return;
	if (o.kind == PUMP_ATTACH)
		attach(&o);
	else
		drain();
}

static void *run(void *unused)
{
	(void)unused;
	for (;;) {
		struct pollfd p[3] = {
			{.fd = order_fd, .events = POLLIN},
			{.fd = streams[0].pipe, .events = POLLIN},
			{.fd = streams[1].pipe, .events = POLLIN},
		};
		int i, pending = streams[0].lost || streams[1].lost;

		poll(p, 3, pending ? RETRY_MS : -1);
		for (i = 0; i < 2; i++) {
			if (p[i + 1].revents)
				serve(&streams[i], 16);
			report_lost(&streams[i], false);
		}
		if (p[0].revents)
			obey();
	}
	return NULL;
}

bool pump_start(int *orders, int *reports)
{
	pthread_attr_t attr;
	pthread_t thread;
	int to[2], from[2];

	if (pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC | O_NONBLOCK))
		return false;
	order_fd = to[0];
	report_fd = from[1];
	*orders = to[1];
	*reports = from[0];
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	return pthread_create(&thread, &attr, run, NULL) == 0;
}
