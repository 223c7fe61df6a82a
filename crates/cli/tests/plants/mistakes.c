/*
 * One mistake of a real-time program at a time: a thread under SCHED_FIFO that runs every 5 ms,
 * and in each of its turns does what its name says. The clean ones do nothing wrong.
 *
 *     mistakes NAME CPU
 *     mistakes list            prints NAME and the rules that it breaks, one a line
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

enum { TURNS = 40, PERIOD_NS = 5000000, PAGE = 4096, BIG = 1 << 20, PRIORITY = 60 };

static char *region;
static char scratch[] = "/tmp/stillcore-mistakes-XXXXXX";
static int file, controller, terminal, event, timer, pipes[2];
static mqd_t queue;
static pthread_mutex_t lock, inheriting;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;
static pthread_t main_thread;
static volatile int sink, holds;

static void must(int failed, const char *what)
{
	if (failed) {
		perror(what);
		exit(1);
	}
}

static void nothing(int turn) { sink += turn; }

/* Page faults: the memory of these programs is not locked. */
static void touch(int turn) { region[turn * PAGE] = 1; }
static void __attribute__((noinline)) deep(int turn)
{
	volatile char frame[64 * PAGE];
	frame[0] = frame[sizeof frame - 1] = (char)turn;
	sink += frame[0];
}
static void grow_stack(int turn) { if (turn) deep(turn); }
static void read_mapped_file(int turn) { sink += region[turn * PAGE]; }
static void drop_and_touch(int turn)
{
	(void)turn;
	sink += region[0] = 1;
}
static void touch_zero_page(int turn) { sink += region[turn * PAGE]; }

/* Memory. */
static void map(int turn)
{
	(void)turn;
	must(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED, "mmap");
}
static void unmap(int turn) { munmap(region + turn * PAGE, PAGE); }
static void big_malloc(int turn)
{
	volatile char *block = malloc(BIG);
	block[0] = (char)turn;
	sink += block[0];
	free((void *)block);
}
static void grow_heap(int turn) { (void)turn; must(sbrk(PAGE) == (void *)-1, "sbrk"); }
static void protect(int turn) { mprotect(region, PAGE, turn & 1 ? PROT_READ : PROT_READ | PROT_WRITE); }
static void remap(int turn)
{
	static char *block;
	if (!block)
		block = malloc(BIG);
	block = realloc(block, BIG + (size_t)(turn + 1) * BIG);
}

/* Sleeps. */
static void sleep_nanosleep(int turn) { (void)turn; nanosleep(&(struct timespec){ 0, 100000 }, NULL); }
static void sleep_usleep(int turn) { (void)turn; usleep(100); }
static void sleep_clock(int turn)
{
	(void)turn;
	clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){ 0, 100000 }, NULL);
}

/* Locks, held by the main thread, which is not real-time. */
static void take_plain(int turn)
{
	(void)turn;
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
}
static void take_inheriting(int turn)
{
	(void)turn;
	pthread_mutex_lock(&inheriting);
	pthread_mutex_unlock(&inheriting);
}

/* Files and terminals. */
static void open_file(int turn) { (void)turn; close(open(scratch, O_RDONLY)); }
static void stat_file(int turn) { struct stat s; (void)turn; sink += stat(scratch, &s); }
static void read_file(int turn) { char c; (void)turn; sink += (int)pread(file, &c, 1, 0); }
static void write_file(int turn) { (void)turn; sink += (int)write(file, "x", 1); }
static void append(int turn)
{
	FILE *log = fopen(scratch, "a");
	if (log) {
		fprintf(log, "%d", turn);
		fclose(log);
	}
}
static void sync_file(int turn) { (void)turn; fsync(file); }
static void print(int turn) { (void)turn; sink += (int)write(terminal, "x", 1); }

/* The kernel's own worker takes each byte of a terminal to who reads it. */
static void wait_for_kworker(int turn)
{
	struct pollfd ends = { .fd = terminal, .events = POLLIN };
	char c = 'x';
	(void)turn;
	sink += (int)write(controller, &c, 1);
	if (poll(&ends, 1, 100) == 1)
		sink += (int)read(terminal, &c, 1);
}

/* Threads and processes. */
static void *end_at_once(void *unused) { return unused; }
static void make_thread(int turn)
{
	pthread_t thread;
	(void)turn;
	if (pthread_create(&thread, NULL, end_at_once, NULL) == 0)
		pthread_join(thread, NULL);
}
static void make_process(int turn)
{
	(void)turn;
	pid_t child = fork();
	if (child == 0)
		_exit(0);
	waitpid(child, NULL, 0);
}

/* What is not wrong. */
static void use_event(int turn)
{
	uint64_t value = 1;
	(void)turn;
	sink += (int)write(event, &value, 8);
	sink += (int)read(event, &value, 8);
}
static void use_pipe(int turn)
{
	char c = 0;
	(void)turn;
	sink += (int)write(pipes[1], &c, 1);
	sink += (int)read(pipes[0], &c, 1);
}
static void use_timer(int turn)
{
	struct itimerspec once = { .it_value = { 0, 100000 } };
	uint64_t value;
	(void)turn;
	timerfd_settime(timer, 0, &once, NULL);
	sink += (int)read(timer, &value, 8);
}
static void use_semaphore(int turn) { (void)turn; sem_post(&semaphore); sem_wait(&semaphore); }
static void use_queue(int turn)
{
	char text[16] = "x";
	(void)turn;
	if (queue != (mqd_t)-1) {
		mq_send(queue, text, 1, 0);
		mq_receive(queue, text, sizeof text, NULL);
	}
}
static void use_condition(int turn)
{
	(void)turn;
	pthread_mutex_lock(&inheriting);
	pthread_cond_signal(&condition);
	pthread_mutex_unlock(&inheriting);
}
static void signal_freely(int turn) { (void)turn; pthread_cond_signal(&condition); }
static void small_malloc(int turn)
{
	volatile char *block = malloc(32);
	block[0] = (char)turn;
	sink += block[0];
	free((void *)block);
}

enum {
	UNLOCKED = 1, MAPS = 2, FILE_MAP = 4, LATE_POLICY = 8, TOP = 16, NO_BUDGET = 32, HELD = 64,
	SIGNALS = 128, TIMER_SIGNALS = 256, WAITS = 512, RAW = 1024, STORED = 2048, LOCKED_BEFORE = 4096,
};

static const struct mistake {
	const char *name, *rules;
	void (*turn)(int);
	int how;
} mistakes[] = {
	{ "fault-heap", "page-fault", touch, UNLOCKED | MAPS },
	{ "fault-stack", "page-fault", grow_stack, UNLOCKED },
	{ "fault-file", "page-fault", read_mapped_file, UNLOCKED | FILE_MAP },
	{ "fault-storage", "page-fault", read_mapped_file, UNLOCKED | FILE_MAP | STORED },
	{ "fault-late-map", "page-fault", touch, UNLOCKED | LOCKED_BEFORE | MAPS },
	{ "fault-zero", "page-fault", touch_zero_page, UNLOCKED | MAPS },
	{ "fault-once", "page-fault", drop_and_touch, UNLOCKED | MAPS },
	{ "map", "memory", map, 0 },
	{ "unmap", "memory", unmap, MAPS },
	{ "big-malloc", "memory", big_malloc, 0 },
	{ "grow-heap", "memory", grow_heap, 0 },
	{ "protect", "memory", protect, MAPS },
	{ "remap", "memory", remap, 0 },
	{ "nanosleep", "relative-sleep", sleep_nanosleep, 0 },
	{ "usleep", "relative-sleep", sleep_usleep, 0 },
	{ "clock-relative", "relative-sleep", sleep_clock, 0 },
	{ "plain-lock", "no-inheritance", take_plain, HELD },
	{ "errorcheck-lock", "no-inheritance", take_plain, HELD },
	{ "signal", "signal", nothing, SIGNALS },
	{ "timer-signal", "signal", nothing, TIMER_SIGNALS },
	{ "open", "file", open_file, 0 },
	{ "stat", "file", stat_file, 0 },
	{ "read", "file", read_file, 0 },
	{ "write", "file", write_file, 0 },
	{ "sync", "file", sync_file, 0 },
	{ "log", "file", append, 0 },
	{ "print", "terminal", print, 0 },
	{ "kworker", "kernel-thread,terminal", wait_for_kworker, RAW },
	{ "free-signal", "condition", signal_freely, WAITS },
	{ "thread", "thread,memory", make_thread, 0 },
	{ "process", "thread,page-fault", make_process, 0 },
	{ "late-policy", "born-other", nothing, LATE_POLICY },
	{ "top-priority", "priority", nothing, TOP },
	{ "no-budget", "no-budget", nothing, NO_BUDGET },
	{ "clean-loop", "", nothing, 0 },
	{ "clean-event", "", use_event, 0 },
	{ "clean-pipe", "", use_pipe, 0 },
	{ "clean-timer", "", use_timer, 0 },
	{ "clean-semaphore", "", use_semaphore, 0 },
	{ "clean-queue", "", use_queue, 0 },
	{ "clean-condition", "", use_condition, WAITS },
	{ "clean-inheriting", "", take_inheriting, HELD },
	{ "clean-malloc", "", small_malloc, 0 },
	{ "clean-uncontended", "", take_plain, 0 },
};

static const struct mistake *mistake;
/* How often its turns slept. */
static long slept;

static void prepare_stack(void)
{
	volatile char frame[32 * PAGE];
	for (size_t i = 0; i < sizeof frame; i += PAGE)
		frame[i] = 1;
	sink += frame[0];
}

/* How often this thread has slept. */
static long sleeps(void)
{
	struct rusage usage;
	must(getrusage(RUSAGE_THREAD, &usage), "getrusage");
	return usage.ru_nvcsw;
}

static void *loop(void *unused)
{
	struct timespec next;

	pthread_setname_np(pthread_self(), "control");
	if (mistake->how & LATE_POLICY) {
		struct sched_param param = { .sched_priority = PRIORITY };
		usleep(1000);
		must(sched_setscheduler(0, SCHED_FIFO, &param), "sched_setscheduler");
	}
	if (!(mistake->how & UNLOCKED))
		prepare_stack();
	small_malloc(0);
	clock_gettime(CLOCK_MONOTONIC, &next);
	next.tv_nsec += 300000000;
	for (int turn = 0; turn < TURNS; turn++) {
		next.tv_nsec += PERIOD_NS;
		while (next.tv_nsec >= 1000000000) {
			next.tv_nsec -= 1000000000;
			next.tv_sec++;
		}
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL) == EINTR)
			;
		long before = mistake->how & STORED ? sleeps() : 0;
		mistake->turn(turn);
		if (mistake->how & STORED)
			slept += sleeps() - before;
	}
	return unused;
}

static void handle(int signal) { sink += signal; }

/* What the thread's turns need. */
static void prepare(void)
{
	pthread_mutexattr_t attributes;
	char name[64];

	pthread_mutexattr_init(&attributes);
	if (!strcmp(mistake->name, "errorcheck-lock"))
		pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
	pthread_mutex_init(&lock, &attributes);
	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&inheriting, &attributes);
	sem_init(&semaphore, 0, 0);
	file = mkstemp(scratch);
	must(file < 0 || ftruncate(file, 2 * TURNS * PAGE), "mkstemp");
	event = eventfd(0, 0);
	timer = timerfd_create(CLOCK_MONOTONIC, 0);
	must(pipe(pipes), "pipe");
	controller = posix_openpt(O_RDWR | O_NOCTTY);
	must(controller < 0 || grantpt(controller) || unlockpt(controller), "posix_openpt");
	snprintf(name, sizeof name, "%s", ptsname(controller));
	terminal = open(name, O_RDWR | O_NOCTTY);
	must(terminal < 0, "open of a terminal");
	if (mistake->how & RAW) {
		struct termios raw;
		must(tcgetattr(terminal, &raw), "tcgetattr");
		cfmakeraw(&raw);
		must(tcsetattr(terminal, TCSANOW, &raw), "tcsetattr");
	}
	struct mq_attr size = { .mq_maxmsg = 4, .mq_msgsize = 16 };
	queue = mq_open("/stillcore-mistakes", O_RDWR | O_CREAT, 0600, &size);
	mq_unlink("/stillcore-mistakes");
	if (mistake->how & STORED) {
		for (int page = 0; page < 2 * TURNS; page++)
			must(pwrite(file, "x", 1, page * PAGE) != 1, "pwrite");
		must(fsync(file), "fsync");
		errno = posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
		must(errno, "posix_fadvise");
	}
	if (mistake->how & LOCKED_BEFORE)
		must(mlockall(MCL_CURRENT), "mlockall");
	if (mistake->how & (MAPS | FILE_MAP)) {
		int of_file = mistake->how & FILE_MAP;
		region = mmap(NULL, 2 * TURNS * PAGE, of_file ? PROT_READ : PROT_READ | PROT_WRITE,
			      of_file ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, of_file ? file : -1, 0);
		must(region == MAP_FAILED, "mmap");
		madvise(region, 2 * TURNS * PAGE, mistake->how & STORED ? MADV_RANDOM : MADV_NOHUGEPAGE);
	}
	if (!(mistake->how & NO_BUDGET)) {
		struct rlimit limit = { 100000, 200000 };
		must(setrlimit(RLIMIT_RTTIME, &limit), "setrlimit");
	}
	if (!(mistake->how & UNLOCKED))
		must(mlockall(MCL_CURRENT | MCL_FUTURE), "mlockall");
	struct sigaction action = { .sa_handler = handle };
	sigaction(SIGUSR1, &action, NULL);
}

static pthread_t start(void)
{
	struct sched_param param = { .sched_priority = mistake->how & TOP ? 99 : PRIORITY };
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	if (!(mistake->how & LATE_POLICY)) {
		pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
		pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
		pthread_attr_setschedparam(&attributes, &param);
	}
	errno = pthread_create(&thread, &attributes, loop, NULL);
	must(errno, "pthread_create");
	return thread;
}

/* What other threads do to it meanwhile. */
static void meddle(pthread_t thread)
{
	pthread_mutex_t *held = strstr(mistake->name, "clean") ? &inheriting : &lock;
	for (int i = 0; i < 300; i++) {
		if (mistake->how & HELD) {
			pthread_mutex_lock(held);
			usleep(1500);
			pthread_mutex_unlock(held);
		}
		if (mistake->how & WAITS) {
			struct timespec until;
			clock_gettime(CLOCK_REALTIME, &until);
			until.tv_sec++;
			pthread_mutex_lock(&inheriting);
			pthread_cond_timedwait(&condition, &inheriting, &until);
			pthread_mutex_unlock(&inheriting);
		}
		if (mistake->how & SIGNALS)
			pthread_kill(thread, SIGUSR1);
		usleep(1000);
		if (pthread_tryjoin_np(thread, NULL) == 0)
			return;
	}
	pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	size_t n = sizeof mistakes / sizeof *mistakes;
	if (argc == 2 && !strcmp(argv[1], "list")) {
		for (size_t i = 0; i < n; i++)
			printf("%s %s\n", mistakes[i].name, mistakes[i].rules);
		return 0;
	}
	for (size_t i = 0; argc == 3 && i < n; i++)
		if (!strcmp(argv[1], mistakes[i].name))
			mistake = &mistakes[i];
	if (!mistake) {
		fprintf(stderr, "mistakes NAME CPU | mistakes list\n");
		return 2;
	}
	cpu_set_t cpus;
	CPU_ZERO(&cpus);
	CPU_SET(atoi(argv[2]), &cpus);
	must(sched_setaffinity(0, sizeof cpus, &cpus), "sched_setaffinity");
	main_thread = pthread_self();
	prepare();
	pthread_t thread = start();
	if (mistake->how & TIMER_SIGNALS) {
		struct itimerval often = { { 0, 7000 }, { 0, 7000 } };
		sigset_t set;
		/* The process's signals go to the other thread. */
		sigemptyset(&set);
		sigaddset(&set, SIGALRM);
		signal(SIGALRM, handle);
		pthread_sigmask(SIG_BLOCK, &set, NULL);
		setitimer(ITIMER_REAL, &often, NULL);
	}
	meddle(thread);
	unlink(scratch);
	/* Storage may have answered before the thread could sleep. */
	if (mistake->how & STORED)
		fprintf(stderr, "slept %ld times\n", slept);
	return 0;
}
