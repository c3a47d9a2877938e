#!/usr/bin/env python3
"""Starts `octavo pick` with every EndpointPickerConfig of a checkout. Prints which of them start, and the reason for the
others.

    tools/epp_configs/try_configs.py CHECKOUT [CHECKOUT ...] [--octavo build/release/octavo]
    tools/epp_configs/try_configs.py repo.git --refs v0.8.0 v0.10.0 HEAD

A checkout is a folder, or a git directory of which the --refs are read (default: HEAD). Configurations are found in
YAML files, Helm values, Markdown and Go. Equal texts count once. The last column says why another program refuses a
configuration as well:

    own plugin   it names a plugin type that no source file of the checkouts defines (mocks of their unit tests)
    wrong there  a Go test expects its own loader to refuse it
    schema       a page of documentation with "...." instead of values
    misprint     a page of documentation whose text is not YAML, or has a list's "-" without a space
"""
import argparse
import collections
import pathlib
import re
import subprocess
import sys
import tempfile
import time

KIND = re.compile(r"^(?P<indent>[ ]*)(?:apiVersion: \S+\s*$|kind: EndpointPickerConfig\s*$)")
SUFFIXES = (".yaml", ".yml", ".md", ".go", ".tpl")
FLAGS = "--secure-serving=false --host 127.0.0.1 --grpc-port 0 --grpc-health-port 0 --metrics-port 0"
START_SECONDS = 20
PLUGIN_TYPE = re.compile(r"^\s*(?:- )?type: *\"?([A-Za-z0-9-]+)\"?\s*$", re.M)
GO_NAME = re.compile(r'= *"([a-z0-9-]+)"')
TEST_CODE = re.compile(r"test|mock", re.I)


def files(checkout, ref):
    """Returns pairs of a path and its text."""
    git = ["git", f"--git-dir={checkout}"]
    if (checkout / "HEAD").is_file():
        found = subprocess.run([*git, "grep", "-lE", r'EndpointPickerConfig|(Type|Name)\w* *= *"', ref], capture_output=True,
                               text=True, check=False)
        for path in found.stdout.splitlines():
            if path.endswith(SUFFIXES):
                yield path.split(":", 1)[1], subprocess.check_output([*git, "show", path]).decode(errors="replace")
        return
    for path in sorted(checkout.rglob("*")):
        if path.suffix in SUFFIXES and path.is_file():
            yield str(path.relative_to(checkout)), path.read_text(errors="replace")


def configs(text):
    """Yields a line number, the line before, and a configuration, with any indentation."""
    lines = text.splitlines()
    number = 0
    while number < len(lines):
        first = KIND.match(lines[number])
        head = "\n".join(lines[number : number + 2])
        if not first or "kind: EndpointPickerConfig" not in head or "apiVersion:" not in head:
            number += 1
            continue
        indent, begin = first["indent"], number
        while number < len(lines) and (not lines[number].strip() or lines[number].startswith(indent)):
            if lines[number].startswith((indent + "```", indent + "`", indent + "---", indent + "EOF")):
                break
            number += 1
        body = [line[len(indent) :] for line in lines[begin:number]]
        yield begin + 1, lines[begin - 1] if begin else "", "\n".join(line.rstrip().rstrip("`") for line in body) + "\n"


def filled(config, endpoints):
    """Returns the configuration with values for <placeholders>, and with an existing file of endpoints."""
    config = re.sub(r"(path: *)\S*endpoints\S*\.yaml\S*", rf"\g<1>{endpoints}", config)
    config = re.sub(r"(?<=//)<[\w-]+>(?:\.<[\w-]+>)?", "name", config)
    placeholder = r"(?:<[^>\n]+>|\$\{[^}\n]+\})"
    config = re.sub(rf"(Name: *){placeholder}", r"\g<1>name", config)
    return re.sub(rf"(: *){placeholder}", r"\g<1>8", config)


def verdict(octavo, config, folder):
    """Returns the reason why the program does not start, or ""."""
    endpoints = folder / "endpoints.yaml"
    endpoints.write_text("endpoints: [{name: a, address: 127.0.0.1, port: '9'}]\n")
    path = folder / "config.yaml"
    path.write_text(filled(config, endpoints))
    discovers = "file-discovery" in config
    flags = [] if discovers else ["--endpoints", "127.0.0.1:9"]
    log = folder / "log"
    with log.open("w") as out:
        process = subprocess.Popen(
            [octavo, "pick", *FLAGS.split(), "--allow-experimental-plugins", "--config-file", str(path), *flags],
            stdout=out, stderr=out)
    try:
        for _ in range(START_SECONDS * 50):
            if "picking endpoints" in log.read_text():
                return ""
            if process.poll() is not None:
                lines = log.read_text().strip().splitlines() or [f"ended with status {process.returncode}, without a line"]
                return lines[-1].removeprefix("octavo: ")
            time.sleep(0.02)
        return "neither started nor ended"
    finally:
        process.kill()
        process.wait()


def refused_elsewhere(config, before, known, why):
    """Returns why another program refuses the configuration (see above), or ""."""
    if "...." in config or re.search(r"^ +\.\.\.$", config, re.M):
        return "schema"
    if "is not YAML" in why or re.search(r"^ +-[A-Za-z]\w*:", config, re.M):
        return "misprint"
    if re.match(r"\s*(const )?error\w* *:?=", before):
        return "wrong there"
    unknown = [name for name in PLUGIN_TYPE.findall(config) + re.findall(r'plugin "([a-z-]+)"', why) if name not in known]
    return f"own plugin: {unknown[0]}" if unknown else ""


def collect(checkout, ref):
    """Returns triples of a place, the line before and a configuration, and the names of all types that Go files
    define."""
    found, known = [], set()
    for path, text in files(checkout, ref):
        if path.endswith(".go") and not TEST_CODE.search(path):
            known.update(GO_NAME.findall(text))
        place = path if ref == "HEAD" else f"{ref}:{path}"
        found += [(f"{place}:{line}", before, config) for line, before, config in configs(text) if "{{" not in config]
    return found, known


def refs_in(checkout, refs):
    if not (checkout / "HEAD").is_file():
        return ["HEAD"]
    known = [["git", f"--git-dir={checkout}", "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}"] for ref in refs]
    return [ref for ref, command in zip(refs, known) if subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode == 0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", nargs="+", type=pathlib.Path)
    parser.add_argument("--octavo", default="build/release/octavo")
    parser.add_argument("--refs", nargs="+", default=["HEAD"], help="commits or tags of git directories; a directory without one skips it")
    options = parser.parse_args()
    known, found = set(), []
    for checkout in options.checkouts:
        for ref in refs_in(checkout, options.refs):
            configurations, names = collect(checkout, ref)
            found += configurations
            known |= names
    seen, counts = set(), collections.Counter()
    print("| configuration | | reason | refused elsewhere |\n|---|---|---|---|")
    for place, before, config in found:
        if config in seen:
            continue
        seen.add(config)
        with tempfile.TemporaryDirectory() as folder:
            why = verdict(options.octavo, config, pathlib.Path(folder))
        elsewhere = refused_elsewhere(config, before, known, why) if why else ""
        counts[("refused" if not elsewhere else "refused elsewhere, too") if why else "started"] += 1
        print(f"| {place} | {'refused' if why else 'started'} | {why} | {elsewhere} |", flush=True)
    print("\n" + ", ".join(f"{count} {what}" for what, count in sorted(counts.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
