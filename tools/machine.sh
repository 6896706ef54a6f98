#!/usr/bin/env bash
# One line about the machine and the day, to stand above measured figures.
set -euo pipefail
model=$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)
memory_gib=$(awk '/^MemTotal/ { printf "%.0f", $2 / 1048576 }' /proc/meminfo)
commit=$(git -C "$(dirname "$0")/.." rev-parse --short HEAD 2>/dev/null || echo "no commit")
echo "machine: ${model:-$(uname -m)}, $(nproc) cores, ${memory_gib} GiB, Linux $(uname -r), $(c++ --version | head -n 1)"
echo "date: $(date -u +%Y-%m-%d), commit: $commit"
