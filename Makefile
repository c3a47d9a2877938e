# The two commands of the README, and what they are made of.
.PHONY: demo test build library page fast-sanitized instructions format clean

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

# liboctavo, the C ABI, and the tests of what stands on it. Compiles every room once more.
library:
	tools/install.sh test
	cmake --preset library
	cmake --build --preset library -j $(JOBS) --target liboctavo octavo_c_test
	ctest --preset library -R bindings
	.venv/bin/python -m pytest -q tests/e2e/test_python.py

# The page at /, from web/ into web/dist, which is committed: building the program needs no npm.
page:
	cd web && npm ci --ignore-scripts && npm run build

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
