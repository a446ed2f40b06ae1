"""Search at evaluation: a policy tries replies out from snapshots, and plays the path of most value."""
