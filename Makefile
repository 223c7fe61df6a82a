# The chores by their short names; `cargo xtask` and `xtask/deps.sh` do the work.
# Written for any POSIX make and sh. Settings: ARGS (of stillcore), STRICT=0 (see `test`), CARGO_TARGET_DIR.

.POSIX:
.PHONY: stories story-timer-migration story-throttling help assess binary test test-lab test-lab-isolation test-lab-every test-lab-attribution test-lab-counts test-lab-disturb test-lab-exposure test-lab-asid test-lab-periodic lab-matrix test-studies deps tidy bench bench-measure bench-trace bench-watch bench-interference fuzz check-release dist fmt clean bench-disturb bench-sched study-sched bench-summary test-calibration bench-graph test-middleware test-lab-cards lab-matrix-rows test-solver study-sched-table7 study-sched-fig8 study-graph study-graph-here study-full study-full-here study-full-lab bench-report test-hosts test-studies-every test-studies-isolation

STRICT = 1
ARGS =
CARGO = cargo

help:
	@echo 'make assess         build the static binary and assess this machine (ARGS="--cpus 3 --duration 20s")'
	@echo 'make test           format, tidy, clippy, tests, Python, report in a browser, kernels in the lab (STRICT=0: none needed)'
	@echo 'make test-lab       isolation applied, killed and undone on six kernels, four boots each (half an hour)'
	@echo 'make lab-matrix     exposure of six kernels, isolated and not (an hour; ARGS="--jobs 3")'
	@echo 'make lab-matrix-rows ROWS=timer ONTO=FILE   some of its rows made anew'
	@echo 'make test-studies   every experiment at small scale, and ways of isolating compared, in guests (two hours)'
	@echo 'make test-middleware  messages on the wire of ROS 2, received by Cyclone DDS; links over it and over iceoryx2 (a quarter of an hour to build)'
	@echo 'make test-hosts     a study on two machines reached by ssh, one of which loses its power (five minutes; needs root, sshd and pip)'
	@echo 'make test-solver    bounds of spin locks beside their integer programs, solved by HiGHS (a minute; needs pip)'
	@echo 'make stories        remedies confirmed in guests: seen, proposed, applied, gone (make story-NAME: one)'
	@echo 'make bench          wake-ups beside cyclictest, in turns (a minute)'
	@echo 'make bench-measure  wake-ups, noise, hogs and load beside cyclictest and oslat (five minutes)'
	@echo 'make bench-disturb  our stressors beside those of stress-ng, in turns (ten minutes)'
	@echo 'make bench-graph    messages by transport and size, beside pmqtest, ptsematest and ddsperf (ten minutes)'
	@echo 'make bench-trace    a trace of 350 MB read by trace-cmd and by us, in turns'
	@echo 'make bench-interference  what two papers counted on an isolated CPU, and six problems provoked, on four kernels (15 minutes)'
	@echo 'make bench-sched    schedulability tests on generated sets, sets a second beside the plain analysis'
	@echo 'make bench-summary  a thousand million samples summarised, beside numpy and polars (8 GB of disk; ARGS="--rows N")'
	@echo 'make bench-report   the report of ten minutes of four cores: its time and its size'
	@echo 'make test-calibration  how often intervals hold and alarms are false, on dependent data (ten minutes)'
	@echo 'make study-graph    graphs idle and disturbed, isolated and not, in guests, beside both papers (half an hour); -here: on this machine'
	@echo 'make study-sched    Table VII of the replication, and Fig. 8 of the RTSS paper in all its readings (half an hour; ARGS="--threads 2")'
	@echo 'make study-full     what ends within minutes at full scale, on this machine (root) and in guests (three quarters of an hour); -here, -lab: one of them'
	@echo 'make bench-watch    trace watch beside cyclictest, here and in a guest, in turns'
	@echo 'make fuzz           damaged traces and samples by the ten million (half an hour; ARGS="--executions N --campaign N")'
	@echo 'make check-release  oldest compiler, licences and sources, both static binaries'
	@echo 'make dist           static binaries for x86-64 and arm64 in dist/'
	@echo 'make deps tidy fmt clean'

# Exit 2 of stillcore is a finding about the machine, no error of the build; 1 is an error.
assess: binary
	@bin="$${CARGO_TARGET_DIR:-target}/$$(uname -m)-unknown-linux-musl/release/stillcore"; \
	status=0; "$$bin" assess $(ARGS) || status=$$?; \
	case $$status in 0 | 2) exit 0 ;; *) exit $$status ;; esac

binary:
	@sh xtask/deps.sh build
	@$(CARGO) build --locked --release --package stillcore --target "$$(uname -m)-unknown-linux-musl"

deps:
	@sh xtask/deps.sh test

test: deps
	@strict=true; test "$(STRICT)" != 0 || strict=false; $(CARGO) xtask test --strict $$strict

tidy:
	@$(CARGO) xtask tidy

# Our side is a program of its own, so that its memory is its own, and built as what ships.
bench-trace:
	@sh xtask/deps.sh test
	@$(CARGO) build --locked --quiet --release --package stillcore-analysis --example attribute
	@mkdir -p docs/results; log="docs/results/bench-trace-$$(date -u +%F).txt"; \
	{ $(HEAD_LINES); $(CARGO) bench --locked --quiet --package stillcore --bench trace -- \
	    --ours "$${CARGO_TARGET_DIR:-$$PWD/target}/release/examples/attribute" $(ARGS); } | tee "$$log"; \
	grep -q '^peak' "$$log"

# The slow tier. Each leaves a dated log with commit and machine.
HEAD_LINES = echo "make $@, $$(date -u +%FT%TZ), commit $$(git rev-parse --short HEAD 2>/dev/null || echo unknown)"; \
	echo "$$(uname -srm), $$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $$(nproc) CPUs"

# An allocation without bound ends the process instead of the machine.
fuzz:
	@$(CARGO) build --locked --quiet --profile fuzz --package stillcore-analysis --example fuzz
	@mkdir -p docs/results; log="docs/results/fuzz-$$(date -u +%F).txt"; \
	{ $(HEAD_LINES); (ulimit -v 4000000; nice -n 19 "$${CARGO_TARGET_DIR:-target}/fuzz/examples/fuzz" $(ARGS)); } | tee "$$log"; \
	grep -q 'executions in all, .* 0 failed' "$$log"

# A matrix of guests: name of the log, test binaries; no others are built.
LAB = log="docs/results/lab-$(1)-$$(date -u +%F).txt"; { $(HEAD_LINES); \
	  $(CARGO) nextest run --locked --target "$$(uname -m)-unknown-linux-musl" --config xtask/ci-profile.toml --cargo-profile ci \
	    --config-file xtask/nextest.toml --profile matrix --package stillcore --features guest-matrix $(patsubst %,--test %,$(2)) -E 'test(/^matrix/)' \
	    --no-fail-fast --success-output final 2>&1; } | grep -vE '^ *($$|\[ *[0-9]|Compiling |Updating |Download)' | tee "$$log"; \
	! grep -q ' FAIL ' "$$log" && grep -q 'tests* run:' "$$log"

# The program that is measured is the one that ships.
STATIC = $${CARGO_TARGET_DIR:-$$PWD/target}/$$(uname -m)-unknown-linux-musl/release/stillcore
BUILD_STATIC = $(CARGO) build --locked --quiet --release --package stillcore --target "$$(uname -m)-unknown-linux-musl"
BENCH_MEASURE = $(CARGO) bench --locked --quiet --package stillcore --bench measure --

bench:
	@sh xtask/deps.sh test
	@$(BUILD_STATIC)
	@mkdir -p docs/results; log="docs/results/bench-wakeup-$$(date -u +%F).txt"; \
	{ $(HEAD_LINES); $(BENCH_MEASURE) wakeup $(ARGS) --program "$(STATIC)"; } | tee "$$log"; \
	grep -q '^median' "$$log"

# The last line of the log is the section's that takes longest.
bench-measure:
	@sh xtask/deps.sh test
	@$(BUILD_STATIC)
	@mkdir -p docs/results; log="docs/results/bench-measure-$$(date -u +%F).txt"; \
	{ $(HEAD_LINES); $(BENCH_MEASURE) $(ARGS) --program "$(STATIC)"; } | tee "$$log"; \
	grep -q '^memory of the process that stores' "$$log"

bench-disturb:
	@sh xtask/deps.sh test
	@$(BUILD_STATIC)
	@mkdir -p docs/results; log="docs/results/bench-disturb-$$(date -u +%F).txt"; \
	{ $(HEAD_LINES); $(CARGO) bench --locked --quiet --package stillcore --bench disturb -- --program "$(STATIC)" $(ARGS); } | tee "$$log"; \
	grep -q '^u_fork .*stress-ng:fork' "$$log"

bench-graph:
	@sh xtask/deps.sh middleware
	@$(BUILD_STATIC)
	@mkdir -p docs/results; log="docs/results/bench-graph-$$(date -u +%F).txt"; \
	{ $(HEAD_LINES); $(CARGO) bench --locked --quiet --package stillcore --bench graph -- --program "$(STATIC)" $(ARGS); } | tee "$$log"; \
	grep -q ': mean: .*ptsematest, one CPU' "$$log"

# Bounds of spin locks beside their integer programs, solved by HiGHS, which pip brings: nothing of it is in the workspace.
test-solver:
	@mkdir -p docs/results; log="docs/results/$@-$$(date -u +%F).txt"; venv="$$(mktemp -d)"; \
	python3 -m venv "$$venv" && "$$venv/bin/pip" install --quiet highspy==1.15.1 || exit 1; \
	$(CARGO) build --locked --quiet --release --package stillcore || exit 1; \
	{ $(HEAD_LINES); "$$venv/bin/python" xtask/solver.py "$${CARGO_TARGET_DIR:-target}/release/stillcore" $(ARGS); } | tee "$$log"; \
	rm -r "$$venv"; grep -q "terms compared, 0 differ" "$$log"

test-lab: test-lab-isolation test-lab-every test-lab-attribution test-lab-counts test-lab-disturb test-lab-cards test-lab-exposure test-lab-asid test-lab-periodic

test-lab-isolation:
	@sh xtask/deps.sh test
	@mkdir -p docs/results
	@$(call LAB,isolation,guest_isolate)

test-lab-every:
	@sh xtask/deps.sh test
	@mkdir -p docs/results
	@$(call LAB,every,guest_every)

test-lab-attribution:
	@sh xtask/deps.sh test
	@mkdir -p docs/results
	@$(call LAB,attribution,guest_truth)

# What we publish as ROS 2 does, received by Cyclone DDS; links over iceoryx2 and over the wire of ROS 2.
test-middleware:
	@sh xtask/deps.sh middleware
	@mkdir -p docs/results; log="docs/results/middleware-$$(date -u +%F).txt"; \
	{ $(HEAD_LINES); echo "Cyclone DDS $$(dpkg-query -W -f '$${Version}' cyclonedds-dev 2>/dev/null || echo of unknown version)"; \
	  $(CARGO) nextest run --locked --config-file xtask/nextest.toml --package stillcore-graph --features ros2,iceoryx2 \
	    -E 'binary(ros2_interop) or test(ros2) or test(iceoryx2) or test(/^transport::/)' --success-output immediate 2>&1; } | \
	  grep -vE '^ *($$|Compiling |Updating |Download|Blocking |running 1 test|────)' | tee "$$log"; \
	grep -q 'messages received and equal' "$$log"

# A study through Ansible on two machines reached by ssh, each a network namespace; one loses its power.
test-hosts:
	@sh xtask/deps.sh hosts
	@$(CARGO) xtask hosts
	@mkdir -p docs/results; log="docs/results/$@-$$(date -u +%F).txt"; \
	{ $(HEAD_LINES); "$${CARGO_TARGET_DIR:-target}/hosts/venv/bin/ansible-playbook" --version | head -n 1; \
	  $(CARGO) nextest run --locked --config-file xtask/nextest.toml --package stillcore --features hosts-ssh-tests \
	    -E 'binary(hosts_ssh)' --success-output immediate 2>&1; } | \
	  grep -vE '^ *($$|Compiling |Updating |Download|Blocking |running 1 test|────)' | tee "$$log"; \
	grep -q 'the table is that of one machine' "$$log"

# Every stressor killed.
test-lab-disturb:
	@sh xtask/deps.sh test
	@mkdir -p docs/results
	@$(call LAB,disturb,guest_disturb_kill)

# Clients whose traffic crosses two emulated network cards.
test-lab-cards:
	@sh xtask/deps.sh test
	@mkdir -p docs/results
	@$(call LAB,cards,guest_cards)

# For guests that are arm64 machines.
BUILD_ARM = $(CARGO) build --locked --quiet --config xtask/ci-profile.toml --profile ci --package stillcore --target aarch64-unknown-linux-musl

# One guest is an arm64 machine, and needs a program of its own.
test-lab-counts:
	@sh xtask/deps.sh release
	@$(BUILD_ARM)
	@mkdir -p docs/results
	@$(call LAB,counts,guest_counts)

# Coefficients that repeat to the event, on every kernel; and two small cells of a matrix.
test-lab-exposure:
	@sh xtask/deps.sh test
	@mkdir -p docs/results
	@$(call LAB,exposure,guest_exposure guest_matrix)

# Interference every 3 s, longer every 30 s, for three minutes.
test-lab-periodic:
	@sh xtask/deps.sh test
	@mkdir -p docs/results
	@$(call LAB,periodic,guest_time)

# The guest is an arm64 machine.
test-lab-asid:
	@sh xtask/deps.sh release
	@$(BUILD_ARM)
	@mkdir -p docs/results
	@$(call LAB,asid,guest_asid)

# The matrix of the docs: six kernels, isolated in four ways. MATRIX_OUT keeps what was measured, and is gone on with.
MATRIX_OUT = target/lab-matrix
MATRIX = lab matrix --profiles none,runtime,partition,boot --suite positive-control,negative-control --stressors perf_sys,perf_task,trace_event,kprobe_toggle,so_timestamp,bpf_filter,module_load,membarrier_expedited,membarrier_private,membarrier_global,rdmsr,stat_refresh,rcu_expedited,vmap_churn,tlb_own,hugepages,u_fork,u_thread,timer,sock,nic_dummy,netns,k_workqueue,mount_tmpfs,cgroup_mkdir

lab-matrix:
	@sh xtask/deps.sh test
	@$(BUILD_STATIC)
	@mkdir -p docs/results; "$(STATIC)" $(MATRIX) --out "$(MATRIX_OUT)" $(ARGS); code=$$?; [ $$code -eq 0 ] || exit $$code; \
	to="docs/results/matrix-$$(date -u +%F)"; cp "$(MATRIX_OUT)/matrix.json" "$$to.json"; \
	{ echo '<!--'; $(HEAD_LINES); echo '-->'; cat "$(MATRIX_OUT)/matrix.md"; } >"$$to.md"

# Some rows of the matrix made anew: ROWS=timer,sock ONTO=docs/results/matrix-DATE.json (the table is written in its place).
ROWS =
ONTO =
lab-matrix-rows:
	@sh xtask/deps.sh test
	@$(BUILD_STATIC)
	@to="$(ONTO)"; to="$${to%.json}"; "$(STATIC)" lab matrix --profiles none,runtime,partition,boot --stressors "$(ROWS)" --onto "$(ONTO)" \
	    --out "$(MATRIX_OUT)-rows" $(ARGS) && cp "$(MATRIX_OUT)-rows/matrix.json" "$$to.json" && \
	{ sed -n '1,/^-->/{/^-->/!p;}' "$$to.md"; $(HEAD_LINES); echo '-->'; cat "$(MATRIX_OUT)-rows/matrix.md"; } >"$$to.tmp" && mv "$$to.tmp" "$$to.md"

test-studies: test-studies-every test-studies-isolation

# Every file of experiments/ at small scale, in guests.
test-studies-every:
	@sh xtask/deps.sh test
	@$(BUILD_STATIC)
	@mkdir -p docs/results; log="docs/results/studies-$$(date -u +%F).txt"; \
	{ $(HEAD_LINES); \
	  $(CARGO) bench --locked --quiet --package stillcore --bench studies -- --program "$(STATIC)" $(ARGS); } | tee "$$log"; \
	grep -q ' 0 failed; .* 0 studies without an answer' "$$log"

test-studies-isolation:
	@sh xtask/deps.sh test
	@$(BUILD_STATIC)
	@mkdir -p docs/results; log="docs/results/study-isolation-$$(date -u +%F).txt"; \
	{ $(HEAD_LINES); \
	  $(CARGO) bench --locked --quiet --package stillcore --bench isolation -- --program "$(STATIC)" $(ARGS); } | tee "$$log"; \
	grep -q '| stillcore |' "$$log"

bench-sched:
	@mkdir -p docs/results; log="docs/results/bench-sched-$$(date -u +%F).txt"; \
	{ $(HEAD_LINES); $(CARGO) bench --locked --quiet --package stillcore-sched --benches -- $(ARGS); } | tee "$$log"; \
	grep -q '^generation and lanes' "$$log"

bench-report:
	@$(BUILD_STATIC)
	@mkdir -p docs/results; log="docs/results/$@-$$(date -u +%F).txt"; \
	{ $(HEAD_LINES); $(CARGO) bench --locked --quiet --package stillcore --bench report -- --program "$(STATIC)" $(ARGS); } | tee "$$log"; \
	grep -q '^report ' "$$log"

bench-summary:
	@sh xtask/deps.sh test
	@$(BUILD_STATIC)
	@mkdir -p docs/results; log="docs/results/$@-$$(date -u +%F).txt"; \
	{ $(HEAD_LINES); python3 crates/cli/benches/summary.py "$(STATIC)" $(ARGS); } | tee "$$log"; \
	grep -q '^peak: .* met' "$$log"

test-calibration:
	@mkdir -p docs/results; log="docs/results/calibration-$$(date -u +%F).txt"; \
	{ $(HEAD_LINES); $(CARGO) run --locked --quiet --release --package stillcore-analysis --example calibration -- $(ARGS); } | tee "$$log"; \
	grep -q '^all inside' "$$log"

study-sched: study-sched-table7 study-sched-fig8

STUDY_SCHED = nice $(CARGO) run --locked --quiet --release --package stillcore -- sched study

# Table VII with as many sets as were published, and with enough.
study-sched-table7:
	@mkdir -p docs/results; log="docs/results/$@-$$(date -u +%F).txt"; out="$$(mktemp -d)"; \
	{ $(HEAD_LINES); for sets in 500 100000; do \
	    $(STUDY_SCHED) experiments/replication-table7.toml --sets $$sets --out "$$out/$$sets" $(ARGS) | grep -v '^written:'; echo; done; } | tee "$$log"; \
	rm -r "$$out"; grep -q '^500 sets cannot support' "$$log"

# All panels of Fig. 8, in the readings that its text allows.
study-sched-fig8:
	@mkdir -p docs/results; log="docs/results/$@-$$(date -u +%F).txt"; out="$$(mktemp -d)"; \
	{ $(HEAD_LINES); for file in experiments/rtss24-fig8*.toml; do \
	    $(STUDY_SCHED) "$$file" --out "$$out/$${file##*/}" $(ARGS) | grep -v '^written:'; echo; done; } | tee "$$log"; \
	rm -r "$$out"; test "$$(grep -c '^area under the curve' "$$log")" -eq "$$(ls experiments/rtss24-fig8*.toml | wc -l)"

# Graphs idle and disturbed, isolated and not, beside both papers: in guests at a hundredth of the published durations and less.
STUDY_GRAPH = rtss24-fig9 rtss24-fig10 replication-table8
study-graph:
	@sh xtask/deps.sh test
	@$(BUILD_STATIC)
	@mkdir -p docs/results; log="docs/results/$@-$$(date -u +%F).txt"; out="$$(mktemp -d)"; \
	{ $(HEAD_LINES); for name in $(STUDY_GRAPH); do echo; echo "== study run $$name --lab 6.1,6.1-rt --scale 0.004 --repetitions 1 $(ARGS)"; \
	    "$(STATIC)" study run $$name --lab 6.1,6.1-rt --scale 0.004 --repetitions 1 --out "$$out/$$name" $(ARGS) | grep -v "^$$out"; done; } | tee "$$log"; \
	rm -r "$$out"; test "$$(grep -c '^median \[lowest' "$$log")" -eq 3

# The same on this machine, which needs root; cells that isolate CPUs do so at run time and give them back.
study-graph-here:
	@$(BUILD_STATIC)
	@mkdir -p docs/results; log="docs/results/$@-$$(date -u +%F).txt"; out="$$(mktemp -d)"; \
	{ $(HEAD_LINES); for name in $(STUDY_GRAPH); do echo; echo "== study run $$name --here --scale 0.02 $(ARGS)"; \
	    "$(STATIC)" study run $$name --here --scale 0.02 --out "$$out/$$name" $(ARGS) | grep -v "^$$out"; done; } | tee "$$log"; \
	rm -r "$$out"; test "$$(grep -c '^median \[lowest' "$$log")" -eq 3

# At full scale, what ends within minutes: on this machine (root), and in guests, where counts are exact. An answer each under
# docs/results/full-DATE; FULL_OUT keeps the cells, and is gone on with.
FULL_OUT = target/study-full
FULL_HERE = rtss24-fig1 rtss24-fig3 rtss24-fig5 rtss24-fig6b rtss24-table3 rtss24-table4 replication-table1 replication-table4 replication-table5
FULL_LAB = rtss24-fig3 rtss24-fig4 rtss24-fig5 rtss24-table1 rtss24-table3 rtss24-table5 access20-table1
FULL_KERNELS = 6.1,6.1-rt
# Published for these.
FULL_OLD = replication-table1
FULL_OLD_KERNELS = 5.10,5.10-rt,6.1,6.1-rt
study-full: study-full-here study-full-lab

study-full-here:
	@$(BUILD_STATIC)
	@$(call FULL,here,--here,$(FULL_HERE))

study-full-lab:
	@sh xtask/deps.sh test
	@$(BUILD_STATIC)
	@$(call FULL,lab,--lab $(FULL_KERNELS),$(FULL_LAB))
	@$(call FULL,lab,--lab $(FULL_OLD_KERNELS),$(FULL_OLD))

FULL = to="docs/results/full-$$(date -u +%F)/$(1)"; mkdir -p "$$to" $(FULL_OUT); { $(HEAD_LINES); } >"$$to/README.txt"; \
	for name in $(3); do out="$(FULL_OUT)/$(1)-$$name"; echo "== study run $$name $(2)"; \
	  "$(STATIC)" study run $$name $(2) --out "$$out" $(ARGS) >/dev/null || exit 1; \
	  for kind in md html; do cp "$$out/study.$$kind" "$$to/$$name.$$kind"; done; cp "$$out/table.parquet" "$$to/$$name.parquet"; \
	done

bench-watch:
	@sh xtask/deps.sh test
	@mkdir -p docs/results; log="docs/results/bench-watch-$$(date -u +%F).txt"; \
	{ $(HEAD_LINES); $(GUEST_BENCH) watch -- $(ARGS); } | tee "$$log"; \
	grep -q '^guest.*median difference' "$$log"

# The program of the lab tests is the one that guests run. `make story-NAME` tells one.
GUEST_BENCH = $(CARGO) bench --locked --quiet --target "$$(uname -m)-unknown-linux-musl" --config xtask/ci-profile.toml --profile ci \
	--package stillcore --bench

bench-interference:
	@sh xtask/deps.sh test
	@mkdir -p docs/results; log="docs/results/$@-$$(date -u +%F).txt"; \
	{ $(HEAD_LINES); $(GUEST_BENCH) interference -- $(ARGS); } | tee "$$log"; \
	grep -q '^kernel' "$$log"

stories: story-timer-migration story-throttling

story-timer-migration story-throttling:
	@sh xtask/deps.sh test
	@mkdir -p docs/results; log="docs/results/$@-$$(date -u +%F).txt"; story="$@"; \
	{ $(HEAD_LINES); $(GUEST_BENCH) remedies -- --story "$${story#story-}" $(ARGS); } | tee "$$log"; \
	grep -q ': gone$$' "$$log"

check-release:
	@sh xtask/deps.sh release
	@$(CARGO) xtask check-release

dist:
	@sh xtask/deps.sh release
	@$(CARGO) xtask dist

fmt:
	@$(CARGO) fmt --all

clean:
	@$(CARGO) clean
	@rm -rf dist
