"""Benchmarks of speed: environments, sandboxes, servers, rollouts, credit, the learner."""
