/*
 * What locking costs a program: a thread that locks and unlocks a mutex over and over, alone, or so
 * that another thread holds it in about one of a hundred times.
 *
 *     locking free|contended SECONDS
 *
 * It prints the thread's own CPU time an iteration, ns: of all of them, and in the least of its
 * batches; the number of iterations; and in how many of these it found the lock taken.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int is_over;

static long long now_ns(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* Some work that neither calls nor waits. */
static void work(int turns)
{
	for (volatile int i = 0; i < turns; i++)
		;
}

/* Holds the lock now and then, and sleeps most of the time. */
static void *other(void *unused)
{
	while (!is_over) {
		struct timespec t = { 0, 250000 };
		nanosleep(&t, NULL);
		pthread_mutex_lock(&lock);
		work(20000);
		pthread_mutex_unlock(&lock);
	}
	return unused;
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "locking free|contended SECONDS\n");
		return 2;
	}
	int contended = !strcmp(argv[1], "contended");
	long long end_ns = now_ns(CLOCK_MONOTONIC) + (long long)(atof(argv[2]) * 1e9);
	/* Some us of work an iteration; alone there is nothing but the lock. */
	int turns = contended ? 10000 : 0, batch = contended ? 1000 : 1000000;
	long long iterations = 0, taken = 0, least_ns = -1, all_ns = 0;
	pthread_t thread;

	if (contended)
		pthread_create(&thread, NULL, other, NULL);
	while (now_ns(CLOCK_MONOTONIC) < end_ns) {
		long long begin_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
		for (int i = 0; i < batch; i++) {
			if (contended && pthread_mutex_trylock(&lock) == 0) {
				/* It was free. */
			} else {
				taken += contended;
				pthread_mutex_lock(&lock);
			}
			work(turns / 10);
			pthread_mutex_unlock(&lock);
			work(turns - turns / 10);
		}
		long long ns = now_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
		all_ns += ns;
		if (least_ns < 0 || ns < least_ns)
			least_ns = ns;
		iterations += batch;
	}
	is_over = 1;
	if (contended)
		pthread_join(thread, NULL);
	printf("%.3f %.3f %lld %lld\n", (double)all_ns / iterations, (double)least_ns / batch, iterations, taken);
	return 0;
}
