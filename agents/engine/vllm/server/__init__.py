"""Servers of vLLM's: the command that starts one, its client, and the engine that draws with several."""
