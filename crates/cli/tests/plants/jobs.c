/*
 * A program of real-time threads whose jobs are known: what releases them, how long they work, what
 * they wait for meanwhile. For `cargo bench -p stillcore --bench model` and the tests of `model`.
 *
 *   jobs COUNT THREAD...
 *
 * THREAD is a list of KEY=VALUE, separated by commas; times are in microseconds:
 *   name, kind, prio (SCHED_FIFO; 0 for SCHED_OTHER), cpu
 *   period, cost (CPU time of a job)
 *   jitter (of the release), drop (percent of the releases that are left out)
 *   suspend (asleep in the middle of each job)
 *   lock (number of a mutex that is held while it works), held for `cost`; or for `hold`, `times` times
 *   a job, with `cost` beside; `inner` (number of a mutex that is taken within), `nap` (asleep with it);
 *   plain (1: all mutexes of the program keep the priority of their holder, else it inherits)
 *   in, out (numbers of channels: a `stage` waits for a message of `in`; every job sends to `out`)
 *   via (pipe or cond: how channels are made)
 *
 * Kinds: absolute (clock_nanosleep until a time), relative (nanosleep), timerfd, signal (a POSIX
 * timer), sporadic (at least a period apart, at most one and a half), stage, deadline
 * (SCHED_DEADLINE, sched_yield at the end of each job).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define MOST 32
#define US 1000L
#define SECOND 1000000000L

struct thread {
	char name[16], kind[16];
	int prio, cpu, in, out, lock, inner, times;
	long period, cost, jitter, drop, suspend, hold, nap;
	unsigned seed;
};

static struct thread threads[MOST];
static int count;
static long jobs;
static int by_condition, is_plain;
static pthread_barrier_t ready;
static pthread_mutex_t locks[MOST];
static struct channel {
	int ends[2];
	pthread_mutex_t lock;
	pthread_cond_t filled;
	long messages;
	int is_over;
} channels[MOST];

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static long now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * SECOND + time.tv_nsec;
}

static struct timespec in_parts(long ns)
{
	return (struct timespec){ .tv_sec = ns / SECOND, .tv_nsec = ns % SECOND };
}

static void sleep_until(long ns)
{
	struct timespec time = in_parts(ns);
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL))
		;
}

static void sleep_for(long ns)
{
	struct timespec time = in_parts(ns);
	nanosleep(&time, NULL);
}

static long cpu_time(void)
{
	struct timespec time;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return time.tv_sec * SECOND + time.tv_nsec;
}

static void execute(long us)
{
	long end = cpu_time() + us * US;
	while (cpu_time() < end)
		;
}

static void send(struct channel *channel)
{
	if (!by_condition) {
		if (write(channel->ends[1], "", 1) != 1)
			fail("write");
		return;
	}
	pthread_mutex_lock(&channel->lock);
	channel->messages++;
	pthread_cond_signal(&channel->filled);
	pthread_mutex_unlock(&channel->lock);
}

/* Whether there was one; else the sender has ended. */
static int receive(struct channel *channel)
{
	char byte;
	if (!by_condition)
		return read(channel->ends[0], &byte, 1) == 1;
	pthread_mutex_lock(&channel->lock);
	while (!channel->messages && !channel->is_over)
		pthread_cond_wait(&channel->filled, &channel->lock);
	int is_there = channel->messages > 0;
	channel->messages -= is_there;
	pthread_mutex_unlock(&channel->lock);
	return is_there;
}

static void end(struct channel *channel)
{
	pthread_mutex_lock(&channel->lock);
	channel->is_over = 1;
	pthread_cond_signal(&channel->filled);
	pthread_mutex_unlock(&channel->lock);
	close(channel->ends[1]);
}

static void section(struct thread *thread, long us)
{
	if (thread->lock >= 0)
		pthread_mutex_lock(&locks[thread->lock]);
	if (thread->inner >= 0)
		pthread_mutex_lock(&locks[thread->inner]);
	execute(us);
	if (thread->nap)
		sleep_for(thread->nap * US);
	if (thread->inner >= 0)
		pthread_mutex_unlock(&locks[thread->inner]);
	if (thread->lock >= 0)
		pthread_mutex_unlock(&locks[thread->lock]);
}

static void work(struct thread *thread)
{
	long us = thread->suspend ? thread->cost / 2 : thread->cost;
	if (thread->hold) {
		for (int time = 0; time < thread->times; time++)
			section(thread, thread->hold);
		execute(us);
	} else {
		section(thread, us);
	}
	if (thread->suspend) {
		sleep_for(thread->suspend * US);
		execute(thread->cost - thread->cost / 2);
	}
	if (thread->out >= 0)
		send(&channels[thread->out]);
}

static long below(struct thread *thread, long limit)
{
	return limit > 0 ? rand_r(&thread->seed) % limit : 0;
}

static struct itimerspec timer(long begin, long period)
{
	return (struct itimerspec){ .it_interval = in_parts(period), .it_value = in_parts(begin) };
}

static void by_timerfd(struct thread *thread, long begin)
{
	int timer_fd = timerfd_create(CLOCK_MONOTONIC, 0);
	struct itimerspec when = timer(begin, thread->period * US);
	uint64_t expirations;
	if (timer_fd < 0 || timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &when, NULL))
		fail("timerfd");
	for (long job = 0; job < jobs; job++) {
		if (read(timer_fd, &expirations, sizeof expirations) != sizeof expirations)
			fail("timerfd");
		work(thread);
	}
}

static void by_signal(struct thread *thread, long begin)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN };
	struct itimerspec when = timer(begin, thread->period * US);
	timer_t id;
	sigset_t wanted;
	siginfo_t info;
	sigemptyset(&wanted);
	sigaddset(&wanted, SIGRTMIN);
	pthread_sigmask(SIG_BLOCK, &wanted, NULL);
	event._sigev_un._tid = syscall(SYS_gettid);
	if (timer_create(CLOCK_MONOTONIC, &event, &id) || timer_settime(id, TIMER_ABSTIME, &when, NULL))
		fail("timer");
	for (long job = 0; job < jobs; job++) {
		if (sigwaitinfo(&wanted, &info) < 0)
			fail("sigwaitinfo");
		work(thread);
	}
}

static void by_deadline(struct thread *thread)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} attributes = {
		.size = sizeof attributes,
		.policy = 6,
		/* Twice what it needs: on a busy machine its clock counts what others took. */
		.runtime = 2 * thread->cost * US,
		.deadline = thread->period * US,
		.period = thread->period * US,
	};
	if (syscall(SYS_sched_setattr, 0, &attributes, 0))
		fail("sched_setattr");
	for (long job = 0; job < jobs; job++) {
		work(thread);
		sched_yield();
	}
}

static void *run(void *argument)
{
	struct thread *thread = argument;
	int is_deadline = !strcmp(thread->kind, "deadline");
	struct sched_param priority = { .sched_priority = thread->prio };
	cpu_set_t cpus;
	CPU_ZERO(&cpus);
	CPU_SET(thread->cpu, &cpus);
	prctl(PR_SET_NAME, thread->name);
	if (!is_deadline && sched_setaffinity(0, sizeof cpus, &cpus))
		fail("sched_setaffinity");
	if (!is_deadline && thread->prio && sched_setscheduler(0, SCHED_FIFO, &priority))
		fail("sched_setscheduler");
	pthread_barrier_wait(&ready);
	long period = thread->period * US, at = now() + 20000 * US;
	if (is_deadline)
		by_deadline(thread);
	else if (!strcmp(thread->kind, "timerfd"))
		by_timerfd(thread, at);
	else if (!strcmp(thread->kind, "signal"))
		by_signal(thread, at);
	else if (!strcmp(thread->kind, "absolute"))
		for (long job = 0; job < jobs; job++, at += period) {
			if (below(thread, 100) < thread->drop)
				continue;
			sleep_until(at + below(thread, thread->jitter * US));
			work(thread);
		}
	else
		for (long job = 0; job < jobs; job++) {
			if (!strcmp(thread->kind, "sporadic"))
				sleep_until(at += period + below(thread, period / 2));
			else if (!strcmp(thread->kind, "relative"))
				sleep_for(period);
			else if (!receive(&channels[thread->in]))
				break;
			work(thread);
		}
	if (thread->out >= 0)
		end(&channels[thread->out]);
	return NULL;
}

static long number(const char *value)
{
	char *end;
	long result = strtol(value, &end, 10);
	if (*end || end == value) {
		fprintf(stderr, "%s: expected a number\n", value);
		exit(2);
	}
	return result;
}

static void parse(struct thread *thread, char *text)
{
	struct {
		const char *key;
		long *where;
	} times[] = { { "period", &thread->period }, { "cost", &thread->cost }, { "jitter", &thread->jitter },
		      { "drop", &thread->drop }, { "suspend", &thread->suspend }, { "hold", &thread->hold },
		      { "nap", &thread->nap } };
	struct {
		const char *key;
		int *where;
	} numbers[] = { { "prio", &thread->prio }, { "cpu", &thread->cpu }, { "in", &thread->in },
			{ "out", &thread->out }, { "lock", &thread->lock }, { "inner", &thread->inner },
			{ "times", &thread->times }, { "plain", &is_plain } };
	thread->in = thread->out = thread->lock = thread->inner = -1;
	thread->times = 1;
	for (char *one = strtok(text, ","); one; one = strtok(NULL, ",")) {
		char *value = strchr(one, '=');
		if (!value)
			value = "";
		else
			*value++ = 0;
		if (!strcmp(one, "name"))
			snprintf(thread->name, sizeof thread->name, "%s", value);
		else if (!strcmp(one, "kind"))
			snprintf(thread->kind, sizeof thread->kind, "%s", value);
		else if (!strcmp(one, "via"))
			by_condition = !strcmp(value, "cond");
		for (size_t at = 0; at < sizeof times / sizeof *times; at++)
			if (!strcmp(one, times[at].key))
				*times[at].where = number(value);
		for (size_t at = 0; at < sizeof numbers / sizeof *numbers; at++)
			if (!strcmp(one, numbers[at].key))
				*numbers[at].where = number(value);
	}
}

int main(int argc, char **argv)
{
	pthread_t started[MOST];
	pthread_mutexattr_t inherits;
	if (argc < 3 || argc - 2 > MOST)
		return 2;
	jobs = number(argv[1]);
	mlockall(MCL_CURRENT | MCL_FUTURE);
	for (count = 0; count < argc - 2; count++) {
		threads[count].seed = 7 + count;
		parse(&threads[count], argv[count + 2]);
	}
	pthread_mutexattr_init(&inherits);
	pthread_mutexattr_setprotocol(&inherits, is_plain ? PTHREAD_PRIO_NONE : PTHREAD_PRIO_INHERIT);
	for (int at = 0; at < MOST; at++) {
		pthread_mutex_init(&locks[at], &inherits);
		pthread_mutex_init(&channels[at].lock, NULL);
		pthread_cond_init(&channels[at].filled, NULL);
		if (pipe(channels[at].ends))
			fail("pipe");
	}
	pthread_barrier_init(&ready, NULL, count);
	for (int at = 0; at < count; at++)
		if (pthread_create(&started[at], NULL, run, &threads[at]))
			fail("pthread_create");
	for (int at = 0; at < count; at++)
		pthread_join(started[at], NULL);
	return 0;
}
