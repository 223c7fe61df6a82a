/*
 * Contention on purpose: one thread holds a lock, another one waits for it, a third one may keep
 * the holder from running. All on one CPU and under SCHED_FIFO, so that the order of events is the
 * program's, and each wait has one owner.
 *
 *     contention CPU ROUNDS KIND:CASE...
 *
 * KIND   plain, errorcheck, recursive, timed, shared, robust, inherit, rwlock, condition, semaphore,
 *        futex (of the program's own, with the value of a contended mutex);
 *        of the kernel, with holds, inverts and urgent: position (the mutex of an open file's
 *        position), inode (the semaphore of a file's contents)
 * CASE   holds       the holder runs until it releases
 *        inverts     a thread of a priority in between preempts the holder
 *        urgent      a thread more urgent than the waiter preempts the holder
 *        sleeps      the holder sleeps
 *        chain       the holder itself waits for a lock, whose holder is preempted
 *        dies        nobody releases: the program ends while one waits for ever
 *        deadlock    two threads wait for one another's locks, for ever
 *
 * The cases run one after another, each with threads and locks of its own, and each prints a line:
 * `KIND:CASE lock ADDRESS deeper ADDRESS`, then `PART NUMBER` of each thread. The addresses are
 * those of the futex words; locks of the kernel have none that a program knows.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { WAITER = 80, URGENT = 90, MIDDLE = 40, HOLDER = 20, DEEPEST = 10 };

enum { PARTS = 4, CONTENDED = 2 };

/* What one call reads or writes of a file, which takes some milliseconds: 64 MiB. */
enum { PIECE = 1 << 16, PIECES = 1024 };

struct scene {
	char kind[32], what[32];
	pthread_mutex_t lock, deeper;
	pthread_rwlock_t rwlock;
	pthread_cond_t condition;
	sem_t semaphore, begin, may_wait, may_preempt, may_go_deeper, done, is_up;
	int is_open;
	volatile int own;
	int file;
	const char *part[PARTS];
	long tid[PARTS];
	int threads;
};

static int rounds;
static struct scene *scene;

static int is(const char *text, const char *other) { return strcmp(text, other) == 0; }

static void must(int error, const char *call)
{
	if (error) {
		fprintf(stderr, "%s: %s\n", call, strerror(error));
		exit(1);
	}
}

static long long cpu_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void compute(long long ns)
{
	long long end = cpu_ns() + ns;
	while (cpu_ns() < end)
		;
}

static void nap(long ns)
{
	struct timespec t = { 0, ns };
	nanosleep(&t, NULL);
}

static void wait_for(sem_t *sem)
{
	while (sem_wait(sem))
		;
}

static void says(const char *part)
{
	static pthread_mutex_t printing = PTHREAD_MUTEX_INITIALIZER;
	pthread_setname_np(pthread_self(), part);
	pthread_mutex_lock(&printing);
	scene->part[scene->threads] = part;
	scene->tid[scene->threads++] = syscall(SYS_gettid);
	pthread_mutex_unlock(&printing);
	sem_post(&scene->is_up);
}

static int is_of_kernel(void) { return is(scene->kind, "position") || is(scene->kind, "inode"); }

/* Reads or writes the file in one call, which holds a lock of the kernel until it ends. */
static void use_file(int pieces, size_t bytes)
{
	static char buffer[PIECE];
	struct iovec all[PIECES];
	for (int i = 0; i < pieces; i++)
		all[i] = (struct iovec){ buffer, bytes };
	if (is(scene->kind, "inode"))
		must(pwritev(scene->file, all, pieces, 0) < 0 ? errno : 0, "pwritev");
	else
		must(readv(scene->file, all, pieces) < 0 ? errno : 0, "readv");
}

static void make_file(void)
{
	char name[] = "/tmp/stillcore-contention-XXXXXX";
	scene->file = mkstemp(name);
	must(scene->file < 0 ? errno : 0, "mkstemp");
	unlink(name);
	must(ftruncate(scene->file, (off_t)PIECE * PIECES) ? errno : 0, "ftruncate");
	/* What is used later is there. */
	use_file(PIECES, PIECE);
}

static void take(void)
{
	struct timespec end;
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += 60;
	if (is(scene->kind, "rwlock"))
		must(pthread_rwlock_wrlock(&scene->rwlock), "pthread_rwlock_wrlock");
	else if (is(scene->kind, "timed"))
		must(pthread_mutex_timedlock(&scene->lock, &end), "pthread_mutex_timedlock");
	else
		must(pthread_mutex_lock(&scene->lock), "pthread_mutex_lock");
}

static void release(void)
{
	if (is(scene->kind, "rwlock"))
		must(pthread_rwlock_unlock(&scene->rwlock), "pthread_rwlock_unlock");
	else
		must(pthread_mutex_unlock(&scene->lock), "pthread_mutex_unlock");
}

static void *waiter(void *unused)
{
	says("waiter");
	for (int round = 0; round < rounds; round++) {
		wait_for(&scene->may_wait);
		if (is_of_kernel()) {
			/* The holder is less urgent: now it begins its call. */
			nap(1000000);
			use_file(1, 1);
		} else if (is(scene->kind, "condition")) {
			must(pthread_mutex_lock(&scene->lock), "pthread_mutex_lock");
			while (!scene->is_open)
				must(pthread_cond_wait(&scene->condition, &scene->lock), "pthread_cond_wait");
			scene->is_open = 0;
			must(pthread_mutex_unlock(&scene->lock), "pthread_mutex_unlock");
		} else if (is(scene->kind, "semaphore")) {
			wait_for(&scene->semaphore);
		} else if (is(scene->kind, "futex")) {
			scene->own = CONTENDED;
			while (scene->own == CONTENDED)
				syscall(SYS_futex, &scene->own, FUTEX_WAIT_PRIVATE, CONTENDED, NULL, NULL, 0);
		} else {
			if (is(scene->what, "deadlock"))
				must(pthread_mutex_lock(&scene->deeper), "pthread_mutex_lock");
			take();
			release();
		}
		sem_post(&scene->done);
	}
	return unused;
}

static void *preempts(void *part)
{
	says(part);
	for (int round = 0; round < rounds; round++) {
		wait_for(&scene->may_preempt);
		if (is_of_kernel())
			nap(2000000);
		compute(1500000);
	}
	return NULL;
}

static void *deepest(void *unused)
{
	says("deepest");
	for (int round = 0; round < rounds; round++) {
		wait_for(&scene->begin);
		must(pthread_mutex_lock(&scene->deeper), "pthread_mutex_lock");
		/* The holder takes its lock, and waits for this one. */
		sem_post(&scene->may_go_deeper);
		compute(200000);
		sem_post(&scene->may_preempt);
		compute(200000);
		must(pthread_mutex_unlock(&scene->deeper), "pthread_mutex_unlock");
	}
	return unused;
}

static void *holder(void *unused)
{
	says("holder");
	for (int round = 0; round < rounds; round++) {
		if (is(scene->what, "chain")) {
			wait_for(&scene->may_go_deeper);
			take();
			sem_post(&scene->may_wait);
			must(pthread_mutex_lock(&scene->deeper), "pthread_mutex_lock");
			must(pthread_mutex_unlock(&scene->deeper), "pthread_mutex_unlock");
			release();
			continue;
		}
		wait_for(&scene->begin);
		if (is_of_kernel()) {
			lseek(scene->file, 0, SEEK_SET);
			sem_post(&scene->may_wait);
			sem_post(&scene->may_preempt);
			use_file(PIECES, PIECE);
			continue;
		}
		if (is(scene->kind, "condition") || is(scene->kind, "semaphore") || is(scene->kind, "futex")) {
			sem_post(&scene->may_wait);
			compute(200000);
			if (is(scene->kind, "futex")) {
				scene->own = 0;
				syscall(SYS_futex, &scene->own, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
			} else if (is(scene->kind, "semaphore")) {
				sem_post(&scene->semaphore);
			} else {
				must(pthread_mutex_lock(&scene->lock), "pthread_mutex_lock");
				scene->is_open = 1;
				must(pthread_mutex_unlock(&scene->lock), "pthread_mutex_unlock");
				must(pthread_cond_signal(&scene->condition), "pthread_cond_signal");
			}
			continue;
		}
		take();
		/* It is more urgent: it runs at once, and waits. */
		sem_post(&scene->may_wait);
		compute(200000);
		if (is(scene->what, "inverts") || is(scene->what, "urgent"))
			sem_post(&scene->may_preempt);
		if (is(scene->what, "sleeps"))
			nap(2000000);
		if (is(scene->what, "deadlock"))
			must(pthread_mutex_lock(&scene->deeper), "pthread_mutex_lock");
		if (is(scene->what, "dies"))
			pause();
		compute(200000);
		release();
	}
	return unused;
}

static pthread_t start(void *(*function)(void *), void *argument, int priority)
{
	pthread_attr_t attributes;
	struct sched_param param = { .sched_priority = priority };
	pthread_t thread;

	pthread_attr_init(&attributes);
	pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
	pthread_attr_setschedparam(&attributes, &param);
	must(pthread_create(&thread, &attributes, function, argument), "pthread_create");
	return thread;
}

static void make_locks(void)
{
	pthread_mutexattr_t attributes;
	pthread_mutexattr_init(&attributes);
	if (is(scene->kind, "errorcheck"))
		pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
	if (is(scene->kind, "recursive"))
		pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
	if (is(scene->kind, "shared"))
		pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	if (is(scene->kind, "robust"))
		pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
	if (is(scene->kind, "inherit"))
		pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
	must(pthread_mutex_init(&scene->lock, &attributes), "pthread_mutex_init");
	must(pthread_mutex_init(&scene->deeper, &attributes), "pthread_mutex_init");
	pthread_rwlock_init(&scene->rwlock, NULL);
	pthread_cond_init(&scene->condition, NULL);
	sem_t *all[] = { &scene->semaphore, &scene->begin, &scene->may_wait, &scene->may_preempt,
			 &scene->may_go_deeper, &scene->done, &scene->is_up };
	for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
		sem_init(all[i], 0, 0);
}

/* The word of a mutex is its first one; musl's is the second. */
static void *word_of(void *mutex)
{
#ifdef PLANT_MUSL
	return (char *)mutex + 4;
#else
	return mutex;
#endif
}

static void play(void)
{
	pthread_t threads[PARTS];
	int n = 0;

	make_locks();
	if (is_of_kernel())
		make_file();
	threads[n++] = start(waiter, NULL, WAITER);
	threads[n++] = start(holder, NULL, HOLDER);
	if (is(scene->what, "inverts") || is(scene->what, "chain"))
		threads[n++] = start(preempts, "middle", MIDDLE);
	if (is(scene->what, "urgent"))
		threads[n++] = start(preempts, "urgent", URGENT);
	if (is(scene->what, "chain"))
		threads[n++] = start(deepest, NULL, DEEPEST);
	for (int i = 0; i < n; i++)
		wait_for(&scene->is_up);
	printf("%s:%s lock %p deeper %p", scene->kind, scene->what,
	       is(scene->kind, "rwlock") ? (void *)&scene->rwlock : word_of(&scene->lock),
	       word_of(&scene->deeper));
	for (int i = 0; i < n; i++)
		printf(" %s %ld", scene->part[i], scene->tid[i]);
	printf("\n");
	fflush(stdout);
	/* Whoever watches looks for new threads now and then. */
	nap(250000000);
	for (int round = 0; round < rounds; round++) {
		sem_post(&scene->begin);
		if (is(scene->what, "dies")) {
			nap(300000000);
			_exit(0);
		}
		wait_for(&scene->done);
		nap(10000000);
	}
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
	if (argc < 4) {
		fprintf(stderr, "contention CPU ROUNDS KIND:CASE...\n");
		return 2;
	}
	cpu_set_t cpus;
	CPU_ZERO(&cpus);
	CPU_SET(atoi(argv[1]), &cpus);
	if (sched_setaffinity(0, sizeof cpus, &cpus)) {
		perror("sched_setaffinity");
		return 1;
	}
	rounds = atoi(argv[2]);
	for (int i = 3; i < argc; i++) {
		/* Never freed: each scene has addresses of its own. */
		scene = calloc(1, sizeof *scene);
		if (sscanf(argv[i], "%31[^:]:%31s", scene->kind, scene->what) != 2) {
			fprintf(stderr, "%s: expected KIND:CASE\n", argv[i]);
			return 2;
		}
		play();
	}
	return 0;
}
