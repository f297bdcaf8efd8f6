# SPDX-License-Identifier: Apache-2.0
# A thin front of meson, for a machine that has only git, make and a shell. `make help` lists the targets.

PREFIX ?= /usr/local
prefix := $(abspath $(PREFIX))
release := build/release
jobs := $(if $(JOBS),-j $(JOBS))

.PHONY: help build demo check check-quick check-long bench install deb clean packages check-packages
.NOTPARALLEL:

help:
	@echo 'make demo         build, run rings of processes and threads against a private daemon'
	@echo 'make check        all checks: builds, tests, sanitizers, lint, model (below 20 minutes)'
	@echo 'make check-quick  release build, unit and integration tests, lint (below 4 minutes on a quiet machine)'
	@echo 'make check-long   all of it, and what takes hours'
	@echo 'make bench        latency, rate, bring-up, beside Open MPI and MPICH where installed'
	@echo 'make build        the release build, in $(release)'
	@echo 'make install [PREFIX=/usr/local] [DESTDIR=]  into any directory, without root'
	@echo 'make deb          Debian packages, in build/deb'
	@echo 'make clean        remove all builds'
	@echo 'demo, check, bench, build and install bring the Debian packages they need.'

packages:
	@tools/install-packages build

check-packages:
	@tools/install-packages build check deb

# Without the tests, which are half of the work; tests/run and bench switch them on in the same folder.
# The prefix is compiled in: a build for another one is configured again.
build: packages
	@if [ ! -f $(release)/build.ninja ]; then \
		meson setup $(release) --prefix='$(prefix)' -Dtests=false && \
		echo '$(prefix)' >$(release)/prefix; \
	elif [ "$$(cat $(release)/prefix 2>/dev/null || echo /usr/local)" != '$(prefix)' ]; then \
		meson configure $(release) -Dprefix='$(prefix)' && \
		echo '$(prefix)' >$(release)/prefix; \
	fi
	@ninja -C $(release) $(jobs)

demo: build
	@tests/demo/run $(release)

check: check-packages
	@tests/run full

check-quick: check-packages
	@tests/run quick

check-long: check-packages
	@tests/run long

bench: build
	@meson configure $(release) -Dtests=true
	@ninja -C $(release) $(jobs)
	@tests/bench/run $(release) $(ARGS)

install: build
	@DESTDIR='$(DESTDIR)' meson install -C $(release) --no-rebuild --quiet
	@echo 'installed into $(DESTDIR)$(prefix)'

deb:
	@tools/install-packages build deb
	@tools/make-deb

clean:
	rm -rf build
