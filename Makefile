# The two commands of the README, and what they are made of.
.PHONY: demo test test-long build wheel package docs page sanitized headers instructions format clean

JOBS ?= $(shell nproc)
PHASE = tools/phase.sh
# Test processes: more than processors, since some of them wait for servers, processes and timers.
TESTS = $$(($(JOBS) + 1))
PRESET ?= release
KINDS ?= deb tarball
CUDA = $(if $(filter cuda,$(PRESET)),tools/install.sh cuda)
PYTEST = .venv/bin/python -m pytest -q --durations 15 -n $(TESTS) --dist loadfile --no-loadscope-reorder

# Installs what is missing, builds, serves a small model, streams one chat answer with its timings, and stops. The time of
# each phase comes last.
demo: build
	@$(PHASE) demo tools/demo.sh
	@$(PHASE) end

# Installs what is missing, builds, and runs every test but the long ones.
test:
	@$(PHASE) begin
	@$(PHASE) test:install tools/install.sh test
	@$(PHASE) test:configure cmake --preset release
	@$(PHASE) test:build cmake --build --preset release -j $(JOBS)
	@$(PHASE) test:ctest ctest --preset release -j $(TESTS) -LE large
	@$(PHASE) test:pytest $(PYTEST)
	@$(PHASE) end

# The same tests in their long forms (src/base/testing/length.h), and those that take 9 GB of memory.
test-long:
	tools/install.sh test
	cmake --preset release
	cmake --build --preset release -j $(JOBS)
	OCTAVO_LONG_TESTS=1 ctest --preset release -j $(TESTS) -LE large
	ctest --preset release -L large

build:
	@$(PHASE) begin
	@$(PHASE) install tools/install.sh build
	@$(PHASE) configure cmake --preset release
	@$(PHASE) build cmake --build --preset release -j $(JOBS) --target octavo

# The Python wheel, in build/dist, installed into a fresh environment and asked for an answer. Compiles the same objects as
# the preset release: behind `make build` it is a matter of ccache.
wheel:
	tools/install.sh build
	$(CUDA)
	tools/wheel.sh $(PRESET)

# The Debian package and the tarball, in build/package, or those of KINDS. With PRESET=cuda, package and wheel hold the CUDA
# backend and their folders end with -cuda.
package:
	tools/install.sh package
	$(CUDA)
	tools/package.sh $(PRESET) $(KINDS)

# The documentation as a site, in build/site; a link that leads nowhere is an error.
docs:
	test -x build/docs-tools/bin/mkdocs || (python3 -m venv build/docs-tools && \
	  build/docs-tools/bin/pip install -q 'mkdocs-material>=9.5,<10')
	build/docs-tools/bin/mkdocs build --quiet --strict

# The page at /, from web/ into web/dist, which is committed: building the program needs no npm.
page:
	cd web && npm ci --ignore-scripts && npm run build

# The unit tests under AddressSanitizer and UndefinedBehaviorSanitizer: all, or those of ROOMS="http kv ..".
sanitized:
	@$(PHASE) begin
	tools/install.sh build
	@$(PHASE) sanitized:configure cmake --preset asan
	@$(PHASE) sanitized:build cmake --build --preset asan -j $(JOBS) --target $(if $(ROOMS),$(ROOMS:=_test),unit_tests)
	@$(PHASE) sanitized:ctest ctest --preset asan -j $(JOBS) -L unit $(if $(ROOMS),-R "^($$(echo $(ROOMS) | tr ' ' '|'))[.]")
	@$(PHASE) end

# Every header compiles alone.
headers:
	tools/install.sh build
	cmake --preset headers
	cmake --build --preset headers -j $(JOBS)

# Operators must not take more instructions than is written down.
instructions:
	tools/install.sh test
	cmake --preset release
	cmake --build --preset release -j $(JOBS) --target op_instructions
	tools/instructions.py

# Formats the lines that changed.
format:
	tools/install.sh test
	tools/format.sh

clean:
	rm -rf build
