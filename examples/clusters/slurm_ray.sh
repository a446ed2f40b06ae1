#!/usr/bin/env bash
# A cluster of Ray on the nodes of a SLURM job, and the run on the first one: sbatch examples/clusters/slurm_ray.sh
#
# Needs manyturn[train,ray] on every node, in a folder that all nodes see, and port 6379 free on the first.
# Without GPUs, --placement.learners N has N ranks learn as one; docs/ranks.md. Where nodes have GPUs,
# --placement.samplers N --placement.gpus 1 has N samplers draw on one each, which we have not tried.
#SBATCH --job-name=manyturn-ray
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=16
set -euo pipefail

# Without them anybody who reaches a node may run anything there as you.
export RAY_AUTH_MODE=token RAY_AUTH_TOKEN
RAY_AUTH_TOKEN=$(openssl rand -hex 32)
export RAY_USAGE_STATS_ENABLED=0

head=$(getent ahostsv4 "$(hostname)" | awk 'NR == 1 {print $1}')
ray start --head --node-ip-address="$head" --port=6379 --num-cpus=12 --include-dashboard=false
trap 'ray stop' EXIT
if [ "$SLURM_JOB_NUM_NODES" -gt 1 ]; then
  srun --nodes=$((SLURM_JOB_NUM_NODES - 1)) --ntasks=$((SLURM_JOB_NUM_NODES - 1)) --exclude="$(hostname)" \
    ray start --address="$head:6379" --num-cpus=16 --block &
fi

manyturn train manyturn/Maze-v0 --placement.kind ray --placement.cluster "$head:6379" --placement.remote true \
  --placement.count "$SLURM_JOB_NUM_NODES" --placement.cpus 12 --env.workers 12 --placement.wait 300 \
  --out runs/slurm-ray
