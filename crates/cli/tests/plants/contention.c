/*
 * Contention on purpose: one thread holds a lock, another one waits for it, a third one may keep
 * the holder from running. All on one CPU and under SCHED_FIFO, so that the order of events is the
 * program's, and each wait has one owner.
 *
 *     contention KIND CASE ROUNDS CPU
 *
 * KIND   plain, errorcheck, recursive, timed, shared, robust, inherit, rwlock, condition, semaphore
 * CASE   holds       the holder runs until it releases
 *        inverts     a thread of a priority in between preempts the holder
 *        urgent      a thread more urgent than the waiter preempts the holder
 *        sleeps      the holder sleeps
 *        chain       the holder itself waits for a lock, whose holder is preempted
 *        dies        nobody releases: the program ends while one waits for ever
 *
 * It prints one line a thread: its part and its number.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { WAITER = 80, URGENT = 90, MIDDLE = 40, HOLDER = 20, DEEPEST = 10 };

static const char *kind, *what;
static int rounds;
static pthread_mutex_t lock, deeper;
static pthread_rwlock_t rwlock;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static sem_t semaphore, begin, may_wait, may_preempt, may_go_deeper, done;
static int is_open;

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
	pthread_setname_np(pthread_self(), part);
	printf("%s %ld\n", part, syscall(SYS_gettid));
	fflush(stdout);
}

static void take(void)
{
	struct timespec end;
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += 60;
	if (is(kind, "rwlock"))
		must(pthread_rwlock_wrlock(&rwlock), "pthread_rwlock_wrlock");
	else if (is(kind, "timed"))
		must(pthread_mutex_timedlock(&lock, &end), "pthread_mutex_timedlock");
	else
		must(pthread_mutex_lock(&lock), "pthread_mutex_lock");
}

static void release(void)
{
	if (is(kind, "rwlock"))
		must(pthread_rwlock_unlock(&rwlock), "pthread_rwlock_unlock");
	else
		must(pthread_mutex_unlock(&lock), "pthread_mutex_unlock");
}

static void *waiter(void *unused)
{
	says("waiter");
	for (int round = 0; round < rounds; round++) {
		wait_for(&may_wait);
		if (is(kind, "condition")) {
			must(pthread_mutex_lock(&lock), "pthread_mutex_lock");
			while (!is_open)
				must(pthread_cond_wait(&condition, &lock), "pthread_cond_wait");
			is_open = 0;
			must(pthread_mutex_unlock(&lock), "pthread_mutex_unlock");
		} else if (is(kind, "semaphore")) {
			wait_for(&semaphore);
		} else {
			take();
			release();
		}
		sem_post(&done);
	}
	return unused;
}

static void *preempts(void *part)
{
	says(part);
	for (int round = 0; round < rounds; round++) {
		wait_for(&may_preempt);
		compute(1500000);
	}
	return NULL;
}

static void *deepest(void *unused)
{
	says("deepest");
	for (int round = 0; round < rounds; round++) {
		wait_for(&begin);
		must(pthread_mutex_lock(&deeper), "pthread_mutex_lock");
		/* The holder takes its lock, and waits for this one. */
		sem_post(&may_go_deeper);
		compute(200000);
		sem_post(&may_preempt);
		compute(200000);
		must(pthread_mutex_unlock(&deeper), "pthread_mutex_unlock");
	}
	return unused;
}

static void *holder(void *unused)
{
	says("holder");
	for (int round = 0; round < rounds; round++) {
		if (is(what, "chain")) {
			wait_for(&may_go_deeper);
			take();
			sem_post(&may_wait);
			must(pthread_mutex_lock(&deeper), "pthread_mutex_lock");
			must(pthread_mutex_unlock(&deeper), "pthread_mutex_unlock");
			release();
			continue;
		}
		wait_for(&begin);
		if (is(kind, "condition") || is(kind, "semaphore")) {
			sem_post(&may_wait);
			compute(200000);
			if (is(kind, "semaphore")) {
				sem_post(&semaphore);
			} else {
				must(pthread_mutex_lock(&lock), "pthread_mutex_lock");
				is_open = 1;
				must(pthread_mutex_unlock(&lock), "pthread_mutex_unlock");
				must(pthread_cond_signal(&condition), "pthread_cond_signal");
			}
			continue;
		}
		take();
		/* It is more urgent: it runs at once, and waits. */
		sem_post(&may_wait);
		compute(200000);
		if (is(what, "inverts") || is(what, "urgent"))
			sem_post(&may_preempt);
		if (is(what, "sleeps"))
			nap(2000000);
		if (is(what, "dies"))
			pause();
		compute(200000);
		release();
	}
	return unused;
}

static pthread_t start(void *(*function)(void *), void *argument, int priority, int cpu)
{
	pthread_attr_t attributes;
	struct sched_param param = { .sched_priority = priority };
	cpu_set_t cpus;
	pthread_t thread;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	pthread_attr_init(&attributes);
	pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
	pthread_attr_setschedparam(&attributes, &param);
	pthread_attr_setaffinity_np(&attributes, sizeof cpus, &cpus);
	must(pthread_create(&thread, &attributes, function, argument), "pthread_create");
	return thread;
}

static void make_locks(void)
{
	pthread_mutexattr_t attributes;
	pthread_mutexattr_init(&attributes);
	if (is(kind, "errorcheck"))
		pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
	if (is(kind, "recursive"))
		pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
	if (is(kind, "shared"))
		pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	if (is(kind, "robust"))
		pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
	if (is(kind, "inherit"))
		pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
	must(pthread_mutex_init(&lock, &attributes), "pthread_mutex_init");
	must(pthread_mutex_init(&deeper, &attributes), "pthread_mutex_init");
	pthread_rwlock_init(&rwlock, NULL);
	sem_t *all[] = { &semaphore, &begin, &may_wait, &may_preempt, &may_go_deeper, &done };
	for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
		sem_init(all[i], 0, 0);
}

int main(int argc, char **argv)
{
	if (argc != 5) {
		fprintf(stderr, "contention KIND CASE ROUNDS CPU\n");
		return 2;
	}
	kind = argv[1];
	what = argv[2];
	rounds = atoi(argv[3]);
	int cpu = atoi(argv[4]);
	make_locks();
	pthread_t threads[4];
	int n = 0;
	threads[n++] = start(waiter, NULL, WAITER, cpu);
	threads[n++] = start(holder, NULL, HOLDER, cpu);
	if (is(what, "inverts") || is(what, "chain"))
		threads[n++] = start(preempts, "middle", MIDDLE, cpu);
	if (is(what, "urgent"))
		threads[n++] = start(preempts, "urgent", URGENT, cpu);
	if (is(what, "chain"))
		threads[n++] = start(deepest, NULL, DEEPEST, cpu);
	nap(300000000);
	for (int round = 0; round < rounds; round++) {
		sem_post(&begin);
		if (is(what, "dies")) {
			nap(300000000);
			_exit(0);
		}
		wait_for(&done);
		nap(10000000);
	}
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
