#!/usr/bin/env bash
# Measures the phases of a long command, in build/phases.
#   tools/phase.sh begin           deletes the phases of earlier commands
#   tools/phase.sh NAME COMMAND..  runs a command and records its time
#   tools/phase.sh end             prints the phases and their sum
# If a command runs others with OCTAVO_PHASES=joined, their phases are in its list.
set -uo pipefail
cd "$(dirname "$0")/.."
list=build/phases

case $1 in
  begin)
    mkdir -p build
    [ "${OCTAVO_PHASES:-}" = joined ] || rm -f $list
    ;;
  end)
    awk '{ printf "%-24s %7.1f s %9.1f s of processor time\n", $1, $2, $3; wall += $2; cpu += $3 }
         END { printf "%-24s %7.1f s %9.1f s of processor time\n", "sum", wall, cpu }' $list
    ;;
  *)
    name=$1
    shift
    TIMEFORMAT='%R %U %S'
    { time "$@" 2>&3; } 3>&2 2>build/phase.time
    status=$?
    awk -v name="$name" '{ print name, $1, $2 + $3 }' build/phase.time >>$list
    exit $status
    ;;
esac
