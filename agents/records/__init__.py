"""Tables and journals of played episodes on disk."""
