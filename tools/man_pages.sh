#!/usr/bin/env bash
# Makes manual pages of the program and its commands from their --help, with help2man.
#   tools/man_pages.sh PROGRAM FOLDER
set -euo pipefail
program=$1 folder=$2
version=$("$program" --version)
mkdir -p "$folder"
bin=$(dirname "$(realpath "$program")")

page() {  # page COMMAND..: octavo-COMMAND.1
  local words=("$@")
  local name=$(IFS=-; echo "octavo${words:+-}${words[*]}")
  local about=$("$program" "${words[@]}" --help | head -n 1)
  local help=--help
  [[ $name == octavo-serve ]] && help=--help-all
  PATH=$bin:$PATH help2man --help-option="$help" --no-info --version-string="$version" --source="Octavo $version" --name="${about%.}" \
    --output="$folder/$name.1" "octavo ${words[*]}"
  gzip -n -9 -f "$folder/$name.1"
}

page
# A line of the list of commands begins with a command's name.
for command in $("$program" --help | sed -n '/^Subcommands:/,$p' | sed -nE 's/^  ([a-z-]+) .*/\1/p'); do page "$command"; done
