#!/usr/bin/env bash
# Runs a command with at most so much memory, page cache included: scripts/within.sh 2G cargo bench …
# Needs root and the memory controller (version 1 or 2); tells the peak afterwards.
set -euo pipefail

limit=${1:?usage: scripts/within.sh LIMIT COMMAND…}
shift
name=tamis-$$
if [ -d /sys/fs/cgroup/memory ]; then
    group=/sys/fs/cgroup/memory/$name
    mkdir "$group"
    echo "$limit" > "$group/memory.limit_in_bytes"
    peak=memory.max_usage_in_bytes
else
    group=/sys/fs/cgroup/$name
    mkdir "$group"
    echo "$limit" > "$group/memory.max"
    peak=memory.peak
fi
# The command joins the group, not this shell, so that the group can be removed.
status=0
bash -c 'echo $$ > "$0/cgroup.procs"; exec "$@"' "$group" "$@" || status=$?
echo "peak of the group, page cache included: $(cat "$group/$peak" 2> /dev/null || echo unknown) bytes of $limit" >&2
rmdir "$group" 2> /dev/null || true
exit $status
