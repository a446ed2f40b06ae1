"""What ``manyturn new-env NAME --kind KIND`` writes: an environment of each kind, to change into one's own."""
