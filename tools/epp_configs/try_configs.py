#!/usr/bin/env python3
"""Starts `octavo pick` with every EndpointPickerConfig of a checkout and prints which start, and why others do not.

    tools/epp_configs/try_configs.py CHECKOUT [CHECKOUT ...] [--octavo build/release/octavo]

A checkout is a folder, or a bare git repository (its HEAD is read). Configurations are found in YAML files, Helm
values, Markdown and Go; texts that are equal count once; those with Helm's braces are left out.
"""
import argparse
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


def files(checkout):
    """Pairs of a path and its text."""
    git = ["git", f"--git-dir={checkout}"]
    if (checkout / "HEAD").is_file():
        for path in subprocess.check_output([*git, "ls-tree", "-r", "--name-only", "HEAD"], text=True).splitlines():
            if path.endswith(SUFFIXES):
                yield path, subprocess.check_output([*git, "show", f"HEAD:{path}"]).decode(errors="replace")
        return
    for path in sorted(checkout.rglob("*")):
        if path.suffix in SUFFIXES and path.is_file():
            yield str(path.relative_to(checkout)), path.read_text(errors="replace")


def configs(text):
    """Pairs of a line number and a configuration, at whatever indentation it is embedded."""
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
        yield begin + 1, "\n".join(line.rstrip().rstrip("`") for line in body) + "\n"


def verdict(octavo, config, folder):
    """"": it starts; else the program's reason."""
    endpoints = folder / "endpoints.yaml"
    endpoints.write_text("endpoints: [{name: a, address: 127.0.0.1, port: '9'}]\n")
    config = re.sub(r"(path: *)\S*endpoints\S*\.yaml\S*", rf"\g<1>{endpoints}", config)
    path = folder / "config.yaml"
    path.write_text(config)
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
                return log.read_text().strip().splitlines()[-1].removeprefix("octavo: ")
            time.sleep(0.02)
        return "neither started nor ended"
    finally:
        process.kill()
        process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", nargs="+", type=pathlib.Path)
    parser.add_argument("--octavo", default="build/release/octavo")
    options = parser.parse_args()
    seen, started, refused, templates = {}, 0, 0, 0
    print("| configuration | | reason |\n|---|---|---|")
    for checkout in options.checkouts:
        for path, text in files(checkout):
            for line, config in configs(text):
                if "{{" in config:
                    templates += 1
                    continue
                if config in seen:
                    continue
                with tempfile.TemporaryDirectory() as folder:
                    why = seen[config] = verdict(options.octavo, config, pathlib.Path(folder))
                started, refused = started + (not why), refused + bool(why)
                print(f"| {path}:{line} | {'refused' if why else 'started'} | {why} |", flush=True)
    print(f"\n{started} started, {refused} refused, {templates} templates left out")
    return 0


if __name__ == "__main__":
    sys.exit(main())
