"""Experience across episodes: what a policy has learnt in words, shown to it in later episodes; no weight changes."""
