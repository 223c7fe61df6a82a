# The chores by their short names; `cargo xtask` and `xtask/deps.sh` do the work.
# Written for any POSIX make and sh. Settings: NAME and ARGS (see `help`), STRICT=0 (see `test`), CARGO_TARGET_DIR.

.POSIX:
.PHONY: help assess test test-all bench lab study fmt dist clean deps

STRICT = 1
NAME =
ARGS =
CARGO = cargo

help:
	@echo 'make assess         build a static binary quickly and assess this machine (ARGS="--cpus 3 --duration 20s")'
	@echo 'make test           format, tidy, clippy, tests, Python, report in a browser, kernels in the lab (STRICT=0: none needed)'
	@echo 'make test-all       everything else: every guest, every matrix, all crash points'
	@echo 'make bench          what can be measured beside its peers; NAME=measure measures (ARGS="wakeup --repetitions 24")'
	@echo 'make lab            matrices of guests; NAME=isolation runs one'
	@echo 'make study          studies; NAME=graph runs one'
	@echo 'make dist           packages for x86-64 and arm64 in dist/: deb, rpm, tarball, OCI image, checksums'
	@echo 'make fmt clean'
	@echo 'cargo xtask --help  the rest: tidy, docs, check-release, hosts'

# Exit 2 of stillcore is a finding about the machine, no error of the build; 1 is an error.
assess:
	@sh xtask/deps.sh build
	@target="$$(uname -m)-unknown-linux-musl"; \
	echo 'Building with the profile "quick", which is not the shipped build: only the code that measures and analyses is optimised. The shipped build takes longer: cargo build --release.'; \
	$(CARGO) build --locked --profile quick --package stillcore --target "$$target" || exit 1; \
	status=0; "$${CARGO_TARGET_DIR:-target}/$$target/quick/stillcore" assess $(ARGS) || status=$$?; \
	case $$status in 0 | 2) exit 0 ;; *) exit $$status ;; esac

deps:
	@sh xtask/deps.sh test

test: deps
	@strict=true; test "$(STRICT)" != 0 || strict=false; $(CARGO) xtask test --strict $$strict

test-all: deps
	@$(CARGO) xtask test-all $(ARGS)

# Without NAME: the list. A result is one file, docs/results/KIND-NAME.json.
bench lab study:
	@$(CARGO) xtask $@ $(NAME) -- $(ARGS)

dist:
	@sh xtask/deps.sh release
	@$(CARGO) xtask dist $(ARGS)

fmt:
	@$(CARGO) fmt --all

clean:
	@$(CARGO) clean
	@rm -rf dist
