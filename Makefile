# The two commands of the README, and what they are made of.
.PHONY: demo test build wheel package docs page sanitized headers instructions format clean

JOBS ?= $(shell nproc)
PYTEST = .venv/bin/python -m pytest -q -o cache_dir=$(CURDIR)/build/pytest tests/e2e

# Installs what is missing, builds, serves a small model, streams one chat answer with its timings, and stops.
demo: build
	tools/demo.sh

# Installs what is missing, builds, and runs every test. One that fails runs once more before it counts, with both results
# printed: on a machine that others use, too, it may have stood still. What fails twice fails the build, and so does what
# pytest cannot even collect.
test:
	tools/install.sh test
	cmake --preset release
	cmake --build --preset release -j $(JOBS)
	ctest --preset release -j $(JOBS) -LE large --repeat until-pass:2
	$(PYTEST) --cache-clear || { [ $$? = 1 ] && echo "These have failed once, and run again alone:" && \
	  $(PYTEST) --last-failed --last-failed-no-failures none; }

build:
	tools/install.sh build
	cmake --preset release
	cmake --build --preset release -j $(JOBS) --target octavo

# The Python wheel, in build/dist, installed into a fresh environment and asked for an answer. Compiles the same objects as
# the preset release: behind `make build` it is a matter of ccache.
wheel:
	tools/install.sh build
	tools/wheel.sh

# The Debian package and the tarball, in build/package.
package:
	tools/install.sh package
	tools/package.sh

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
	tools/install.sh build
	cmake --preset asan
	cmake --build --preset asan -j $(JOBS) --target $(if $(ROOMS),$(ROOMS:=_test),unit_tests)
	ctest --preset asan -j $(JOBS) -L unit $(if $(ROOMS),-R "^($$(echo $(ROOMS) | tr ' ' '|'))[.]")

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

format:
	git ls-files 'src/*.cc' 'src/*.h' | xargs clang-format-19 -i

clean:
	rm -rf build
