#!/usr/bin/env bash
# Hosts on all nodes of a SLURM job, and the run on the first one: sbatch examples/clusters/slurm_hosts.sh
#
# Needs manyturn[train,hosts] on every node, in a folder that all nodes see, and port 9001 free on each.
#SBATCH --job-name=manyturn
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=16
set -euo pipefail

export MANYTURN_TOKEN
MANYTURN_TOKEN=$(openssl rand -hex 16) # srun passes it on; nothing is encrypted between the nodes

# Each node listens at the address by which the others know it.
srun --kill-on-bad-exit=0 bash -c \
  'exec manyturn host --host "$(getent ahostsv4 "$(hostname)" | cut -d " " -f 1 | uniq)" --port 9001 --workers 12' &
hosts=$!
trap 'kill "$hosts"' EXIT

addresses=""
for node in $(scontrol show hostnames "$SLURM_JOB_NODELIST"); do
  addresses+="${addresses:+, }\"http://$(getent ahostsv4 "$node" | awk 'NR == 1 {print $1}'):9001\""
done

manyturn train manyturn/Maze-v0 --placement.kind static --placement.hosts "[$addresses]" --placement.wait 300 \
  --out runs/slurm
