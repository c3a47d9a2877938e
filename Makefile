# The two commands of the README, and what they are made of.
.PHONY: demo test build fast-sanitized instructions format clean

JOBS ?= $(shell nproc)

# Installs what is missing, builds, serves the shipped model, streams one chat answer with its timings, and stops.
demo: build
	tools/demo.sh

# Installs what is missing, builds, and runs every test.
test:
	tools/install.sh test
	cmake --preset release
	cmake --build --preset release -j $(JOBS)
	ctest --preset release -j $(JOBS) -LE large
	.venv/bin/python -m pytest -q tests/e2e

build:
	tools/install.sh build
	cmake --preset release
	cmake --build --preset release -j $(JOBS) --target octavo

# The unit tests under AddressSanitizer and UndefinedBehaviorSanitizer.
fast-sanitized:
	tools/install.sh build
	cmake --preset asan
	cmake --build --preset asan -j $(JOBS)
	ctest --preset asan -j $(JOBS) -L unit

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
